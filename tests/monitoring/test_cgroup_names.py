"""Names that engines give to control groups, as their documentation and the kernel show them."""

import pytest

from wattloom.monitoring.cgroup_names import Place, guest_name, place_of

ID = "4f3c" * 16
UID = "d8b7f0ac-3a52-4b32-9b5a-2d3e4f5a6b7c"
FLAT = UID.replace("-", "_")

CONTAINERS = {
    "docker, systemd": (f"/system.slice/docker-{ID}.scope", "docker", ""),
    "docker, cgroupfs": (f"/docker/{ID}", "docker", ""),
    "docker, with groups of its own inside": (f"/docker/{ID}/init.scope", "docker", ""),
    "containerd, systemd": (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        "containerd",
        UID,
    ),
    "containerd, guaranteed": (
        f"/kubepods.slice/kubepods-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        "containerd",
        UID,
    ),
    "containerd, systemd's name by cgroupfs": (
        f"/system.slice/containerd.service/kubepods-besteffort-pod{FLAT}.slice:cri-containerd:{ID}",
        "containerd",
        UID,
    ),
    "kubernetes, cgroupfs": (f"/kubepods/burstable/pod{UID}/{ID}", "", UID),
    "cri-o, systemd": (
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{FLAT}.slice/crio-{ID}.scope",
        "cri-o",
        UID,
    ),
    "cri-o, with groups inside": (f"/kubepods.slice/kubepods-pod{FLAT}.slice/crio-{ID}.scope/container", "cri-o", UID),
    "podman, root": (f"/machine.slice/libpod-{ID}.scope/container", "podman", ""),
    "podman, user": (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", "podman", ""),
    "podman, cgroupfs": (f"/libpod_parent/libpod-{ID}", "podman", ""),
    "nerdctl": (f"/system.slice/nerdctl-{ID}.scope", "containerd", ""),
    "kind, a node in a container": (
        f"/docker/{'a' * 64}/kubelet.slice/kubelet-kubepods-pod{FLAT}.slice/cri-containerd-{ID}.scope",
        "containerd",
        UID,
    ),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_known_by_its_group(name: str) -> None:
    path, engine, pod = CONTAINERS[name]
    found = place_of(path)
    assert (found.container, found.engine, found.pod) == (ID, engine, pod)
    assert found.group == path


def test_a_static_pod_has_a_uid_without_dashes() -> None:
    assert place_of(f"/kubepods/burstable/pod{'ab' * 16}/{ID}").pod == "ab" * 16


def test_the_monitor_of_a_container_is_not_in_it_but_in_its_pod() -> None:
    found = place_of(f"/kubepods.slice/kubepods-pod{FLAT}.slice/crio-conmon-{ID}.scope")
    assert (found.container, found.pod) == ("", UID)


def test_lxc_and_nspawn_containers_have_names() -> None:
    assert place_of("/lxc.payload.web/system.slice/ssh.service").container == "web"
    assert place_of("/lxc/web").engine == "lxc"
    assert place_of("/machine.slice/systemd-nspawn@build.service/payload").container == "build"
    assert place_of(r"/machine.slice/machine-my\x2dbox.scope").container == "my-box"


def test_guests_of_libvirt_are_known_by_their_group() -> None:
    found = place_of(r"/machine.slice/machine-qemu\x2d3\x2dweb\x2dfront.scope/libvirt/emulator")
    assert (found.vm, found.container) == ("web-front", "")
    assert place_of("/machine/qemu-1-db.libvirt-qemu/vcpu0").vm == "db"


def test_the_other_hierarchies_are_asked_where_the_one_that_counts_says_nothing() -> None:
    found = place_of("/", (f"/docker/{ID}",))
    assert (found.group, found.container) == ("/", ID)


def test_units_are_the_innermost_ones() -> None:
    assert place_of("/system.slice/ssh.service").unit == "ssh.service"
    assert place_of("/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service").unit == "editor.service"
    assert place_of("/user.slice/user-1000.slice").unit == "user-1000.slice"
    assert place_of("/batch/job7").unit == "batch/job7"
    assert place_of("/") == Place()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/qemu-system-x86_64 -name guest=web,debug-threads=on -m 512", "web"),
        ("qemu-system-aarch64 -m 512 -name plain", "plain"),
        ("/usr/libexec/qemu-kvm -name odd,,name,process=x", "odd,name"),
        ("kvm -m 512", ""),
        ("/usr/bin/firecracker --id box-1 --api-sock /x", "box-1"),
        ("less -name guest=web", ""),
        ("qemu-system-x86_64 -name", ""),
        ("", ""),
    ],
)
def test_guests_are_known_by_the_command_line(command: str, name: str) -> None:
    assert guest_name(command.replace(" ", "\0").encode()) == name
