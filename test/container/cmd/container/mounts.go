package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// devices are those that every container has.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// mountAll makes the root file system of the image, with what a runtime adds, the root of this process, read-only.
func (c *container) mountAll() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := bind(c.root, c.root); err != nil {
		return err
	}
	for _, volume := range c.volumes {
		if _, err := c.mount(volume); err != nil {
			return err
		}
	}
	for _, mount := range c.mounts {
		to, err := c.mount(mount)
		if err != nil {
			return err
		}
		if err := readOnly(to); err != nil {
			return err
		}
	}
	if err := c.mountDevices(); err != nil {
		return err
	}
	proc := filepath.Join(c.root, "proc")
	if err := os.MkdirAll(proc, 0o555); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := readOnly(c.root); err != nil {
		return err
	}
	return c.pivot()
}

// mount binds a directory FROM:TO and returns where it is now.
func (c *container) mount(mount string) (string, error) {
	from, to, err := splitMount(mount)
	if err != nil {
		return "", err
	}
	to = filepath.Join(c.root, to)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	return to, bind(from, to)
}

// mountDevices binds those of the caller, since a user namespace cannot create any.
func (c *container) mountDevices() error {
	for _, name := range devices {
		to := filepath.Join(c.root, "dev", name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
		if err := bind("/dev/"+name, to); err != nil {
			return err
		}
	}
	return nil
}

// pivot leaves nothing of the caller's file system within reach.
func (c *container) pivot() error {
	if err := os.Chdir(c.root); err != nil {
		return err
	}
	// Both roots are stacked on the same place, so that no directory is needed for the old one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the former root: %w", err)
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", from, to, err)
	}
	return nil
}

// readOnly forbids writes by this mount. Options that the caller's file system is mounted with stay: a user namespace cannot remove them.
func readOnly(path string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return fmt.Errorf("reading how %s is mounted: %w", path, err)
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID)
	for has, keep := range map[int64]uintptr{
		unix.ST_NODEV: unix.MS_NODEV, unix.ST_NOEXEC: unix.MS_NOEXEC, unix.ST_NOATIME: unix.MS_NOATIME,
		unix.ST_NODIRATIME: unix.MS_NODIRATIME, unix.ST_RELATIME: unix.MS_RELATIME,
	} {
		if stat.Flags&has != 0 {
			flags |= keep
		}
	}
	if err := unix.Mount("", path, "", flags, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", path, err)
	}
	return nil
}
