#!/bin/bash
# picture.sh PROGRAM OUT.svg: docs/pictures/cuda-errors.svg, drawn from what `PROGRAM errors` prints. PROGRAM is posenc_cuda_device of
# `make cuda`, or build/release/posenc_cuda_no_device, which no nvcc is needed for.
set -eu
data=$(mktemp) && trap 'rm -f "$data"' EXIT
"$1" errors >"$data"
LC_ALL=C.UTF-8 gnuplot <<END
set encoding utf8
set terminal svg noenhanced background '#ffffff' size 760,420 fixed font ',12' linewidth 1
set output '$2'
set datafile separator ','
set logscale xy
set xrange [16:1.1e12]
set yrange [3e-17:8]
set lmargin at screen 0.09
set rmargin at screen 0.72
set border 3 lw 0.6 lc rgb '#555555'
set tics out nomirror scale 0.5 textcolor rgb '#222222'
set xtics ('100' 1e2, '10⁴' 1e4, '10⁶' 1e6, '10⁸' 1e8, '10¹⁰' 1e10, '10¹²' 1e12)
set ytics ('1' 1, '10⁻³' 1e-3, '10⁻⁶' 1e-6, '10⁻⁹' 1e-9, '10⁻¹²' 1e-12, '10⁻¹⁵' 1e-15)
set grid xtics ytics back lt 1 lw 0.5 lc rgb '#dddddd'
set title 'Largest error of a cosine, by position: 128 channels, base 10,000' textcolor rgb '#222222'
set xlabel 'position (tokens)' textcolor rgb '#222222'
unset key
set label 1 "Hugging Face's floats" at screen 0.735, first 2.3 textcolor rgb '#d55e00'
set label 2 'floats on the fly, at least' at screen 0.735, first 0.35 textcolor rgb '#cc79a7'
set label 3 'bfloat16 rounds by' at graph 0.01, first 3.6e-3 textcolor rgb '#8a8a8a'
set label 4 'float16 by' at graph 0.01, first 4.6e-4 textcolor rgb '#8a8a8a'
set label 5 'product in double' at screen 0.735, first 6e-5 textcolor rgb '#009e73'
set label 6 'turns in float: on a GPU' at screen 0.735, first 6e-8 textcolor rgb '#0072b2'
set label 7 'turns in double' at screen 0.735, first 2.5e-16 textcolor rgb '#000000'
plot '$data' using 1:(2**-9) skip 1 with lines lw 0.8 dt (6,5) lc rgb '#8a8a8a', \
  '' using 1:(2**-12) skip 1 with lines lw 0.8 dt (6,5) lc rgb '#8a8a8a', \
  '' using 1:6 skip 1 with lines lw 1.5 lc rgb '#cc79a7', \
  '' using 1:5 skip 1 with lines lw 1.5 lc rgb '#d55e00', \
  '' using 1:4 skip 1 with lines lw 1.5 lc rgb '#009e73', \
  '' using 1:3 skip 1 with lines lw 1.5 lc rgb '#000000', \
  '' using 1:2 skip 1 with lines lw 2 lc rgb '#0072b2'
END
