package main

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/kind/pkg/cluster"
)

// answerTimeout is how long a container engine may take to answer: its client waits without end for a daemon that hangs.
const answerTimeout = 10 * time.Second

// engines are the programs that kind can use, in the order in which they are tried.
var engines = []string{"docker", "podman", "nerdctl"}

// providers select the engine that kind uses. By default kind takes the first that is installed, though its daemon may be off or
// hang, and another one work.
var providers = map[string]func() cluster.ProviderOption{
	"docker":  cluster.ProviderWithDocker,
	"podman":  cluster.ProviderWithPodman,
	"nerdctl": func() cluster.ProviderOption { return cluster.ProviderWithNerdctl("") },
}

// available is the first engine that works; the error says why no cluster of kind can be created on this computer.
func available() (engine string, err error) { return availableWith(exec.LookPath, ask) }

// ask runs a program that answers at once and returns the last line that it has written.
func ask(program string, args ...string) (string, error) {
	return askFor(answerTimeout, program, args...)
}

func askFor(timeout time.Duration, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", errors.Errorf("no answer within %s", timeout)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1], err
}

func availableWith(look func(string) (string, error), ask func(string, ...string) (string, error)) (string, error) {
	var reasons []string
	for _, engine := range engines {
		if _, err := look(engine); err != nil {
			continue
		}
		output, err := ask(engine, "version")
		switch {
		case err == nil:
			return engine, nil
		case output == "":
			output = err.Error()
		}
		reasons = append(reasons, engine+" does not work: "+output)
	}
	if len(reasons) > 0 {
		return "", errors.New(strings.Join(reasons, "; "))
	}
	return "", errors.Errorf("none of %s is installed: kind makes nodes from containers; see https://docs.docker.com/engine/install/",
		strings.Join(engines, ", "))
}

// forbidden returns why a working container engine does not give what nodes of kind need, by running one container with
// it: nodes are privileged. It needs the node image, which it pulls. nil where all is given.
func forbidden(engine string, ask func(string, ...string) (string, error)) error {
	output, err := ask(engine, "run", "--rm", "--privileged", "--entrypoint", "/bin/true", nodeImage)
	return errors.Wrapf(err, "%s runs no privileged container of %s: %s", engine, nodeImage, output)
}
