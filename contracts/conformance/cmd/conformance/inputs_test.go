package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// The core that is given the kubeconfig has none of its files, and no program for credentials.
func TestATargetKubeconfigIsWhole(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("ca", "authority")
	write("certificate", "certificate")
	write("key", "key")
	write("token", "word\n")
	const frame = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://c', certificate-authority: ca}}]\nusers: [{name: u, user: "
	content, err := embedded(write("kubeconfig", frame+"{client-certificate: certificate, client-key: key, tokenFile: token}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := config.Clusters["c"], config.AuthInfos["u"]
	got := []string{
		string(cluster.CertificateAuthorityData), string(user.ClientCertificateData), string(user.ClientKeyData), user.Token,
		cluster.CertificateAuthority + user.ClientCertificate + user.ClientKey + user.TokenFile,
	}
	if want := "authority certificate key word "; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, user := range map[string]string{
		"a program": "{exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}", "no file": "{tokenFile: nowhere}",
	} {
		if _, err := embedded(write("other", frame+user+"}]\n")); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A report is published, with the command that repeats it.
func TestTheCommandOfAReportHasNoPassword(t *testing.T) {
	set, f := flag.NewFlagSet("run", flag.ContinueOnError), runFlags{}
	f.flags(set)
	if err := set.Parse([]string{"--probe", "http://user:pass-word@127.0.0.1:8080/machines", "--namespace", "mine"}); err != nil {
		t.Fatal(err)
	}
	want := "conformance run --namespace=mine --probe=http://user:xxxxx@127.0.0.1:8080/machines"
	if got := commandLine("run", set); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if f.probe != "http://user:pass-word@127.0.0.1:8080/machines" {
		t.Errorf("the probe is asked at %q", f.probe)
	}
}

// The words of a command that fails are in the error, and what it leaves in the background, as a provider, holds nobody up.
func TestRestart(t *testing.T) {
	t.Parallel()
	if err := restart("echo no such service; exit 3")(t.Context()); err == nil || !strings.Contains(err.Error(), "no such service") {
		t.Errorf("the error is %v", err)
	}
	begin := time.Now()
	if err := restart("sleep 60 &")(t.Context()); err != nil || time.Since(begin) > 30*time.Second {
		t.Errorf("the error is %v, after %s", err, time.Since(begin))
	}
}

// The Ctrl-C of a terminal, which goes to all processes of a group, does not end a restart; the end of its time ends all that it waits for.
func TestRestartIsAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	group := filepath.Join(t.TempDir(), "group")
	if err := restart("cut -d' ' -f5 /proc/self/stat >" + group)(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(group)
	if err != nil {
		t.Fatal(err)
	}
	if its := strings.TrimSpace(string(content)); its == "" || its == strconv.Itoa(syscall.Getpgrp()) {
		t.Errorf("the group of the command is %q, and ours %d", its, syscall.Getpgrp())
	}
	ctx, cancel := context.WithCancel(t.Context())
	child := filepath.Join(t.TempDir(), "child")
	over := make(chan error, 1)
	go func() { over <- restart("sleep 600 & echo $! >" + child + "; wait")(ctx) }()
	pid := 0
	for begin := time.Now(); pid == 0; {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the command has started nothing")
		}
		content, _ := os.ReadFile(child)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-over; err == nil {
		t.Error("a command that was ended is no error")
	}
	for begin := time.Now(); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("what the command has started is still there")
		}
	}
}

// zombie reports whether a process has ended, and its parent has not asked how.
func zombie(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(status), ") Z ")
}
