// Program mutate changes the pure functions of the core, one operator at a time, and prints which changes no test detects.
// All changes of a package are compiled into one test binary, which an environment variable switches one by one. Only
// tests that need no API server are run, but for a few small packages.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "mutate this package alone")
	files := flag.String("files", "", "of its files only these, separated by commas")
	again := flag.String("again", "", "an earlier report: try again only the mutants that it lists")
	flag.DurationVar(&timeout, "timeout", timeout, "how long the tests may take with one mutant, also when they only wait")
	statements := flag.Bool("statements", false, "leave out statements, too, one at a time")
	list := flag.Bool("list", false, "list the tests that judge, and run nothing else")
	flag.Parse()
	for _, t := range targets {
		if *only != "" && *only != t.dir {
			continue
		}
		if *files != "" {
			chosen := strings.Split(*files, ",")
			t.files = slices.DeleteFunc(slices.Clone(t.files), func(file string) bool { return !slices.Contains(chosen, file) })
		}
		if len(t.files) == 0 {
			continue
		}
		t.statements = *statements
		if err := t.run(os.Stdout, *list, *again); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// name is that of the package.
func (t target) name() string {
	if t.program {
		return "main"
	}
	return filepath.Base(t.dir)
}

// run compiles the package with its mutants and reports those that survive.
func (t target) run(out io.Writer, list bool, again string) error {
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	mutants, binary, err := t.compile(temp)
	if err != nil {
		return err
	}
	if list {
		listing, err := t.test(run{binary: binary, seeds: fewSeeds}, "-test.list", t.tests)
		fmt.Fprint(out, listing)
		return err
	}
	if again != "" {
		report, err := os.ReadFile(again) // our own argument
		if err != nil {
			return err
		}
		listed := strings.Split(string(report), "\n")
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !slices.Contains(listed, "  "+m.String()) })
	}
	judges, err := t.judges(binary)
	if err != nil {
		return err
	}
	survived := t.survivors(judges, t.survivors(judges, mutants, fewSeeds), manySeeds)
	fmt.Fprintf(out, "%s: %d mutants, %d killed, %d survive\n", t.dir, len(mutants), len(mutants)-len(survived), len(survived))
	for _, mutant := range survived {
		fmt.Fprintf(out, "  %s\n", mutant)
	}
	return nil
}

// compile writes the changed files to a directory and builds the test binary with them in place of the real ones.
func (t target) compile(temp string) ([]mutant, string, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, "", err
	}
	replaced := map[string]string{}
	put := func(name string, content []byte) error {
		path := filepath.Join(temp, name)
		replaced[filepath.Join(root, t.dir, name)] = path
		return os.WriteFile(path, content, 0o600)
	}
	var mutants []mutant
	for _, name := range t.files {
		source, err := os.ReadFile(filepath.Join(t.dir, name))
		if err != nil {
			return nil, "", err
		}
		changed, found, err := instrument(name, source, len(mutants)+1, t.statements)
		if err != nil {
			return nil, "", err
		}
		mutants = append(mutants, found...)
		if err := put(name, changed); err != nil {
			return nil, "", err
		}
	}
	if err := put("mutate_switch.go", []byte(strings.Replace(switches, "PACKAGE", t.name(), 1))); err != nil {
		return nil, "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, "", err
	}
	overlayFile, binary := filepath.Join(temp, "overlay.json"), filepath.Join(temp, "mutated.test")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		return nil, "", err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", binary, "./"+t.dir) // our own arguments
	if output, err := build.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("building the tests of %s: %w\n%s", t.dir, err, output)
	}
	return mutants, binary, nil
}

// Simulations run with few seeds first, which most mutants do not survive, and with many for the others.
const fewSeeds, manySeeds = 60, 400

// survivors runs with each mutant the tests that it may change, two mutants at a time.
func (t target) survivors(judges []judge, mutants []mutant, seeds int) []mutant {
	lives := make([]bool, len(mutants))
	slots := make(chan struct{}, 2)
	var running sync.WaitGroup
	for i, mutant := range mutants {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			lives[i] = t.survives(mutant.id, judges, seeds)
		})
	}
	running.Wait()
	var survived []mutant
	for i, mutant := range mutants {
		if lives[i] {
			survived = append(survived, mutant)
		}
	}
	return survived
}

// A mutant counts as detected after some seconds of CPU time, since it makes a loop endless; also when it only waits.
const limited = `ulimit -t 40; exec "$0" "$@"`

var timeout = 5 * time.Minute

// run is a start of a test program: with which mutant, none if 0, with how many seeds, and the file for what it meets.
type run struct {
	binary    string
	id, seeds int
	met       string
}

func (t target) test(r run, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	args = append([]string{"-c", limited, r.binary, "-test.failfast"}, args...)
	run := exec.CommandContext(ctx, "sh", args...) // built above
	run.Dir = t.dir
	run.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(r.id), "MUTANTS_MET="+r.met, "MILLWRIGHT_SEEDS="+strconv.Itoa(r.seeds))
	if !t.server {
		run.Env = append(run.Env, "MILLWRIGHT_PURE_TESTS=1")
	}
	var output bytes.Buffer
	run.Stdout, run.Stderr = &output, &output
	err := run.Run()
	if ctx.Err() != nil {
		err = errors.New("no end in sight")
	}
	return output.String(), err
}
