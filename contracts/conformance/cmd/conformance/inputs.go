package main

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/probe"
)

// inputs reads the files that the flags name.
func (f *runFlags) inputs(
	ctx context.Context, profile string, stdin io.Reader, stderr io.Writer,
) (*rest.Config, conformance.RunOptions, error) {
	settings := conformance.RunOptions{Namespace: f.namespace, Parallel: f.parallel, Log: stderr}
	core := profile == conformance.CoreProfile.Name
	if err := f.fitting(profile); err != nil {
		return nil, settings, err
	}
	if !core && len(f.samples) == 0 {
		return nil, settings, errors.New("set --sample, a file with an object of the provider or its template")
	}
	for _, path := range f.samples {
		data, err := read(path, stdin)
		if err != nil {
			return nil, settings, errors.Wrap(err, "--sample")
		}
		settings.Sample = append(append(settings.Sample, "\n---\n"...), data...)
	}
	var err error
	if f.timeouts != "" {
		if settings.Timeouts, err = read(f.timeouts, stdin); err != nil {
			return nil, settings, errors.Wrap(err, "--timeouts")
		}
	}
	if f.target != "" {
		if settings.TargetKubeconfig, err = embedded(f.target); err != nil {
			return nil, settings, errors.Wrap(err, "--target-kubeconfig")
		}
	}
	if f.probe != "" {
		if settings.Probe, err = answering(ctx, f.probe); err != nil {
			return nil, settings, errors.Wrap(err, "--probe")
		}
	}
	if f.restart != "" {
		settings.Restart = restart(f.restart)
	}
	config, err := f.connect(profile)
	return config, settings, err
}

// fitting refuses flags that the profile does not use, which would seem to have an effect, and standard input that would be read
// twice.
func (f *runFlags) fitting(profile string) error {
	core, infra := profile == conformance.CoreProfile.Name, profile == conformance.InfraMachineProfile.Name
	for _, flag := range []struct {
		name           string
		given, fitting bool
	}{
		{"target-kubeconfig", f.target != "", core},
		{"sample", len(f.samples) > 0, !core},
		{"restart", f.restart != "", !core},
		{"probe", f.probe != "", infra},
	} {
		if flag.given && !flag.fitting {
			return errors.Errorf("--%s is not a flag for profile %s: omit it", flag.name, profile)
		}
	}
	stdins := 0
	for _, path := range append(slices.Clone(f.samples), f.timeouts) {
		if path == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return errors.New("standard input is used more than once: set - for one of --sample and --timeouts, once, and files for the others")
	}
	return nil
}

func read(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

// embedded reads a kubeconfig and embeds the content of its files: the core does not have these files, and runs no program for credentials.
func embedded(path string) ([]byte, error) {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, err
	}
	for name, user := range config.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return nil, errors.Errorf("user %s gets its credentials from a program, which no core runs: use one with a token or certificate", name)
		}
		if user.TokenFile == "" {
			continue
		}
		if !filepath.IsAbs(user.TokenFile) {
			user.TokenFile = filepath.Join(filepath.Dir(path), user.TokenFile)
		}
		token, err := os.ReadFile(user.TokenFile)
		if err != nil {
			return nil, err
		}
		user.Token, user.TokenFile = strings.TrimSpace(string(token)), ""
	}
	return clientcmd.Write(*config)
}

// answering returns the probe of an endpoint that responds: one that does not would cause skipped rules only after minutes.
func answering(ctx context.Context, endpoint string) (probe.Probe, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, errors.Errorf("%q is not an HTTP URL such as http://127.0.0.1:8080/machines", endpoint)
	}
	answers := probe.HTTP(endpoint)
	_, err = answers.Machines(ctx)
	return answers, err
}

// restartTimeout bounds the command of --restart: one that hangs fails its case, and the others continue.
const restartTimeout = 5 * time.Minute

// restart runs a shell command that returns when the provider runs again.
func restart(command string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, restartTimeout)
		defer cancel()
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stdout, cmd.Stderr = &output, &output
		// The terminal sends Ctrl-C to a whole process group: an interrupted restart would leave the provider down, and
		// machines that no controller deletes.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		// A background process that it has started, such as a provider, keeps its output open.
		cmd.WaitDelay = time.Second
		if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return errors.Wrapf(err, "--restart %q: %s", command, bytes.TrimSpace(output.Bytes()))
		}
		return nil
	}
}
