// Program container runs a program as a kubelet's container runtime does, in namespaces of its own: with the root file system of an
// unpacked image, which it cannot write to, as its image's user, without capabilities and without a way to new privileges. It
// shares only the network. The caller needs only the right to create user namespaces. Linux only.
//
//	container -root DIR -user 65532 [-mount FROM:TO]... [-volume FROM:TO]... -- PROGRAM [ARGUMENT]...
//	container -root DIR -check
//
// The environment is that of the caller. It is for tests: it has neither cgroups nor seccomp.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside means that the namespaces have been created.
const inside = "inside"

type container struct {
	root   string
	user   int
	mounts []string
	// volumes can be written to.
	volumes []string
	argv    []string
	// check exits instead of starting a program.
	check bool
}

func main() {
	c := &container{}
	flags := flag.NewFlagSet("container", flag.ExitOnError)
	flags.StringVar(&c.root, "root", "", "The directory with the root file system.")
	flags.IntVar(&c.user, "user", 65532, "The user and the group in the container.")
	flags.Func("mount", "A directory FROM:TO to be mounted read-only, as absolute paths.", func(s string) error {
		c.mounts = append(c.mounts, s)
		return nil
	})
	flags.Func("volume", "A directory FROM:TO that the program may write to, as an emptyDir.", func(s string) error {
		c.volumes = append(c.volumes, s)
		return nil
	})
	flags.BoolVar(&c.check, "check", false, "Start no program: check whether this computer allows containers.")
	flags.Bool(inside, false, "Used by the program itself.")
	_ = flags.Parse(os.Args[1:])
	c.argv = flags.Args()
	if c.root == "" || len(c.argv) == 0 && !c.check {
		fmt.Fprintln(os.Stderr, "container: -root and a program are required")
		os.Exit(2)
	}
	if flags.Lookup(inside).Value.String() == "true" {
		fmt.Fprintln(os.Stderr, "container:", c.enter()) // Returns only with an error.
		os.Exit(1)
	}
	code, err := c.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
	}
	os.Exit(code)
}

// run creates the namespaces, in which the program starts itself once more, and waits until it exits.
func (c *container) run() (int, error) {
	cmd := exec.Command("/proc/self/exe", append([]string{"-" + inside}, os.Args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: c.user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: c.user, HostID: os.Getgid(), Size: 1}},
		// What it takes to mount, only in the new user namespace; dropped before the program starts.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP},
		Pdeathsig:   syscall.SIGKILL,
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("creating namespaces, which the kernel or a sandbox around may forbid: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	if err := cmd.Wait(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0 {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// enter takes the root file system and becomes the program. It returns if that fails.
func (c *container) enter() error {
	if err := c.mountAll(); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := giveUp(); err != nil {
		return err
	}
	if c.check {
		os.Exit(0)
	}
	return fmt.Errorf("starting %s: %w", c.argv[0], unix.Exec(c.argv[0], c.argv, os.Environ()))
}

// giveUp drops all capabilities and the way to get any.
func giveUp() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing the ambient capabilities: %w", err)
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// splitMount is FROM and TO.
func splitMount(mount string) (from, to string, err error) {
	from, to, ok := strings.Cut(mount, ":")
	if !ok || !strings.HasPrefix(from, "/") || !strings.HasPrefix(to, "/") {
		return "", "", fmt.Errorf("-mount %q is not FROM:TO with absolute paths", mount)
	}
	return from, to, nil
}
