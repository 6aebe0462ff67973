module example.org/posenc/vectors

go 1.21
