#!/usr/bin/env bash
# tutti topo discover, on machines made up here: a folder with what the kernel would say, and an NVML that reads from a
# file which GPUs there are (fakes/fake_nvml.c).
. "$TT_SOURCE_DIR/tests/cli_common.inc"
[ -e "${FAKE_NVML_LIBRARY:-}" ] || { echo "skipped: no fake_nvml"; exit 77; }
export TUTTI_NVML_LIBRARY=$FAKE_NVML_LIBRARY

put() { mkdir -p "$(dirname "$1")" && echo "$2" >"$1"; }

# device PATH CLASS SPEED WIDTH NUMA: a PCI device at .../PATH, which begins with its root complex.
device() {
    local at=$root/sys/devices/$1 id=${1##*/}
    put "$at/class" "$2"
    put "$at/vendor" 0x10de
    put "$at/device" 0x2330
    put "$at/max_link_speed" "$3 GT/s PCIe"
    put "$at/current_link_speed" "2.5 GT/s PCIe" # idle
    put "$at/max_link_width" "$4"
    put "$at/current_link_width" "$4"
    put "$at/numa_node" "$5"
    mkdir -p "$root/sys/bus/pci/devices"
    ln -s "../../../devices/$1" "$root/sys/bus/pci/devices/$id"
}

# rdma NAME PATH GBITS STATE LAYER
rdma() {
    local at=$root/sys/class/infiniband/$1
    put "$at/ports/1/rate" "$3 Gb/sec (4X NDR)"
    put "$at/ports/1/state" "$4"
    put "$at/ports/1/link_layer" "$5"
    put "$at/sys_image_guid" "b859:9f03:00aa:00${1#mlx5_}0"
    ln -s "../../../devices/$2" "$at/device"
}

# machine NAME FAMILY MODEL VENDOR NODES
machine() {
    root=$work/$1.keep
    export TUTTI_SYSTEM_ROOT=$root FAKE_NVML=$work/$1.keep/gpus
    put "$root/proc/cpuinfo" "$(printf 'processor\t: 0\nvendor_id\t: %s\ncpu family\t: %s\nmodel\t\t: %s\nmodel name\t: x\n' "$4" "$2" "$3")"
    for node in $(seq 0 $(($5 - 1))); do
        put "$root/sys/devices/system/node/node$node/cpumap" "ffffffff,ffffffff"
    done
}

# --- like a DGX H100: two sockets, each with four PCIe switches of a GPU and a NIC; four NVSwitches --------------
machine dgx 6 143 GenuineIntel 2
put "$root/sys/module/nvidia_peermem/version" 1
for i in 0 1 2 3 4 5 6 7; do
    complex=pci0000:${i}0 numa=$((i / 4))
    device "$complex/0000:${i}0:01.0" 0x060400 32.0 16 $numa
    device "$complex/0000:${i}0:01.0/0000:${i}1:00.0" 0x060400 32.0 16 $numa
    for slot in 0 1; do
        device "$complex/0000:${i}0:01.0/0000:${i}1:00.0/0000:${i}2:0$slot.0" 0x060400 32.0 16 $numa
    done
    device "$complex/0000:${i}0:01.0/0000:${i}1:00.0/0000:${i}2:00.0/0000:${i}3:00.0" 0x030200 32.0 16 $numa
    device "$complex/0000:${i}0:01.0/0000:${i}1:00.0/0000:${i}2:01.0/0000:${i}4:00.0" 0x020700 32.0 16 $numa
    rdma mlx5_$i "$complex/0000:${i}0:01.0/0000:${i}1:00.0/0000:${i}2:01.0/0000:${i}4:00.0" 400 "4: ACTIVE" InfiniBand
    echo "gpu 00000000:${i}3:00.0 90 NVIDIA H100 80GB HBM3"
    for switch in "a0 5" "a1 4" "a2 4" "a3 5"; do
        echo "link 00000000:${switch% *}:00.0 2 ${switch#* }"
    done
done >$root/gpus
rdma mlx5_8 "pci0000:00/0000:00:01.0" 100 "1: DOWN" Ethernet

want 0 "mlx5_8 is left out: no port of it is up" -- topo discover -o node.keep.xml
count() { # count N PATTERN: so many lines of the file
    [ "$(grep -cE "$2" "$file")" -eq "$1" ] || fail "$file: $(grep -cE "$2" "$file") lines of $2, not $1"
}
file=node.keep.xml
count 2 '<cpu numaid="[01]" affinity="ffffffff,ffffffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">'
count 8 '<gpu dev="[0-7]" sm="90" gdr="1">'
count 16 'count="5" tclass="0x068000"'
count 16 'count="4" tclass="0x068000"'
count 8 '<net name="mlx5_[0-7]" dev="[0-7]" speed="400000" port="1" .*guid="0xb8599f0300aa00[0-7]0" maxconn="131072" gdr="1"'
count 8 'busid="0000:[0-7]1:00.0" class="0x060400" .*link_speed="32.0 GT/s PCIe" link_width="16"'
count 24 '<pci '
want 0 - -- topo lint ./node.keep.xml
[ "$(cat stdout)" = "no findings" ] || fail "the node is found bad: $(cat stdout)"
want 0 - -- topo show ./node.keep.xml --json
has '"gpu" : 8'
want 0 - -- predict --topo ./node.keep.xml -b 1M --algo ring -q
cp stdout by_xml.keep
want 0 "mlx5_8 is left out" -- topo discover
cp stdout node.keep.ini
for line in "gpus = 8" "nvswitches = 1" "nics = 8" "pcie-switches = 8" "cpus = 2" "sm = 90 ; " "bandwidth = 400 Gbit/s" "cpu = intel 6 143"; do
    grep -qF "$line" node.keep.ini || fail "no \"$line\" in $(cat node.keep.ini)"
done
grep -q '^pairs = 0-0x18 1-0x18 ' node.keep.ini || fail "18 NVLinks a GPU: $(cat node.keep.ini)"
want 0 - -- predict --topo ./node.keep.ini -b 1M --algo ring -q
want 0 - -- predict --topo ./node.keep.ini:4 -b 1M --algo ring -q

# A lane lost is seen; a GPU lost is said.
put "$root/sys/devices/pci0000:30/0000:30:01.0/0000:31:00.0/0000:32:00.0/0000:33:00.0/current_link_width" 8
want 0 "mlx5_8" -- topo discover -o node.keep.xml
want 1 - -- topo lint ./node.keep.xml
has "0000:33:00.0"
sed -i '1,5d; 6i lost 15' "$root/gpus"
"$TUTTI" topo discover -o node.keep.xml 2>stderr
grep -q "GPU 0 is left out: GPU is lost (it fell off the bus" stderr || fail "a lost GPU: $(cat stderr)"
count 7 '<gpu '

# --- two GPUs on PCIe, no NVLink, one socket of AMD's without NUMA, an Ethernet card ------------------------------
machine pair 25 1 AuthenticAMD 0
device pci0000:40/0000:40:01.1 0x060400 16.0 16 -1
device pci0000:40/0000:40:01.1/0000:41:00.0 0x030000 16.0 16 -1
device pci0000:60/0000:60:01.1 0x060400 16.0 8 -1
device pci0000:60/0000:60:01.1/0000:61:00.0 0x030000 16.0 16 -1
device pci0000:00/0000:00:03.0 0x020000 8.0 8 -1
put "$root/sys/devices/pci0000:00/0000:00:03.0/virtio0/x" x
put "$root/sys/class/net/eth0/speed" 25000
put "$root/sys/class/net/eth0/operstate" up
ln -s ../../../devices/pci0000:00/0000:00:03.0/virtio0 "$root/sys/class/net/eth0/device"
put "$root/sys/class/net/lo/operstate" unknown
printf 'gpu 00000000:41:00.0 86 NVIDIA RTX A6000\ngpu 00000000:61:00.0 86 NVIDIA RTX A6000\n' >$root/gpus
want 0 - -- topo discover -o pair.keep.xml
file=pair.keep.xml
count 1 '<cpu numaid="-1" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">'
count 2 '<gpu dev="[01]" sm="86"'
count 0 '<nvlink'
count 1 '<net name="eth0" dev="0" speed="25000" .*gdr="0"'
count 3 '<pci '
count 1 'busid="0000:61:00.0" class="0x030000" .*link_speed="16.0 GT/s PCIe" link_width="8"'
want 0 - -- predict --topo ./pair.keep.xml -b 1M --algo ring -q
want 0 - -- topo discover --format nccl-xml
cmp -s stdout pair.keep.xml || fail "--format nccl-xml: $(diff stdout pair.keep.xml)"

# A bridge joins them; a driver that does not say what a link leads to.
printf 'gpu 00000000:41:00.0 86 A\nlink 00000000:61:00.0 0 4\ngpu 00000000:61:00.0 86 A\nlink 00000000:41:00.0 - 4\n' >$root/gpus
want 0 - -- topo discover -o pair.keep.xml
count 1 '<nvlink target="0000:61:00.0" count="4" tclass="0x030200"/>'
count 1 '<nvlink target="0000:41:00.0" count="4" tclass="0x030200"/>'
want 0 - -- predict --topo ./pair.keep.xml -b 1M --algo ring -q
sed -i '2i mig' $root/gpus
want 0 "GPU 0 (0000:41:00.0) is in MIG mode" -- topo discover -o pair.keep.xml

# --- no GPU, and what is refused -------------------------------------------------------------------------------------
echo "fail 9" >$root/gpus
want 77 "the NVIDIA driver does not answer: Driver Not Loaded (modprobe nvidia" -- topo discover --format nccl-xml
echo "fail 18" >$root/gpus
want 77 "version mismatch (the library is newer or older than the kernel module: reboot)" -- topo discover -o no.xml
: >$root/gpus
want 77 "the NVIDIA driver shows none" -- topo discover -o no.xml
TUTTI_NVML_LIBRARY=/no/such.so want 77 "no NVIDIA driver here (/no/such.so cannot be loaded)" -- topo discover -o no.xml
if "$TUTTI" topo show this >/dev/null 2>&1; then # with hwloc
    want 0 "the NVIDIA driver shows none: only the CPUs are described" -- topo discover
    has "processes ="
fi
want 2 "discover takes no \"x\"" -- topo discover x
want 2 "discover has no --json" -- topo discover --json
want 2 "discover takes no --set" -- topo discover --set a.b=1
want 2 "--format dot is not one of" -- topo discover --format dot
rm -rf ./*.keep ./*.keep.*
nothing_left
finish
