package main

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// answerTimeout is how long a container engine may take to answer: its client waits for ever for a daemon that hangs.
const answerTimeout = 10 * time.Second

// engines are the programs that kind can use.
var engines = []string{"docker", "podman", "nerdctl"}

// unavailable says why no cluster of kind can be made on this computer; nil where one can.
func unavailable() error { return unavailableWith(exec.LookPath, ask) }

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

func unavailableWith(look func(string) (string, error), ask func(string, ...string) (string, error)) error {
	var reasons []string
	for _, engine := range engines {
		if _, err := look(engine); err != nil {
			continue
		}
		said, err := ask(engine, "version")
		switch {
		case err == nil:
			return nil
		case said == "":
			said = err.Error()
		}
		reasons = append(reasons, engine+" does not work: "+said)
	}
	if len(reasons) > 0 {
		return errors.New(strings.Join(reasons, "; "))
	}
	return errors.Errorf("none of %s is installed: kind makes nodes from containers; see https://docs.docker.com/engine/install/",
		strings.Join(engines, ", "))
}

// forbidden says why a container engine that works does not give what nodes of kind need, by running one container with
// it: nodes are privileged. It needs the node image, which it pulls. nil where all is given.
func forbidden(look func(string) (string, error), ask func(string, ...string) (string, error)) error {
	for _, engine := range engines {
		if _, err := look(engine); err != nil {
			continue
		}
		if said, err := ask(engine, "run", "--rm", "--privileged", "--entrypoint", "/bin/true", nodeImage); err != nil {
			return errors.Wrapf(err, "%s runs no privileged container of %s: %s", engine, nodeImage, said)
		}
		return nil
	}
	return errors.New("there is no container engine")
}
