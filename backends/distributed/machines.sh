#!/bin/sh
# machines.sh PROGRAM [ARGUMENTS...]: a rank on each of two 'machines', network namespaces with a wire of 1 Gb/s between them
# that takes a millisecond either way (RATE, DELAY), or no time where the kernel has no netem. Open MPI, as root; says so and
# exits with 77 where that is not allowed.
rate=${RATE:-1gbit} delay=${DELAY:-1ms}
one=posenc-1-$$ two=posenc-2-$$
here=$(mktemp -d)
clean() {
  ip netns del "$one" 2>/dev/null
  ip netns del "$two" 2>/dev/null
  rm -rf "$here"
}
trap clean EXIT
trap 'exit 130' INT TERM
skip() { echo "no machines are shown: $1"; exit 77; }
command -v ip >/dev/null && command -v tc >/dev/null || skip "ip and tc (iproute2) are missing"
ip netns add "$one" 2>/dev/null && ip netns add "$two" || skip "network namespaces are not allowed here"
ip link add wire0 netns "$one" type veth peer name wire1 netns "$two" || skip "there is no veth"
for n in 1 2; do
  space=posenc-$n-$$ wire=wire$((n - 1))
  ip -n "$space" addr add 10.77.0.$n/24 dev $wire
  ip -n "$space" link set $wire up
  ip -n "$space" link set lo up
  tc -n "$space" qdisc add dev $wire root netem rate "$rate" delay "$delay" limit 100000 2>/dev/null || {
    tc -n "$space" qdisc add dev $wire root tbf rate "$rate" burst 256kb latency 50ms 2>/dev/null ||
      skip "the wire cannot be slowed down (netem, tbf)"
    wire_says=", and no delay: this kernel has no netem"
  }
done
echo "two machines on a wire of $rate${wire_says:- and $delay}"
# What Open MPI calls in place of ssh: HOST COMMAND.
cat >"$here/agent" <<AGENT
#!/bin/sh
while case \$1 in -*) true ;; *) false ;; esac; do shift; done
shift
exec ip netns exec $two unshare --uts sh -c "hostname posenc-two; \$*"
AGENT
chmod +x "$here/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
ip netns exec "$one" unshare --uts sh -c 'hostname posenc-one; exec "$@"' sh \
  mpirun --host 10.77.0.1:1,10.77.0.2:1 -n 2 --bind-to none --mca plm_rsh_agent "$here/agent" --mca btl tcp,self \
  --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 -x OMP_NUM_THREADS "$@"
