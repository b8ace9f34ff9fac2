package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// judge is a test of a package.
type judge struct {
	binary, name string
	took         time.Duration
	// meets are the mutants that it executes with values for which they change something. No other mutant changes what it does.
	meets map[int]bool
	slow  bool
}

// judges runs each test alone, without any change, to measure what it meets and how long it takes; they are ordered by that.
func (t target) judges(binary string) ([]judge, error) {
	listing, err := t.test(run{binary: binary, seeds: fewSeeds}, "-test.list", t.tests)
	if err != nil {
		return nil, fmt.Errorf("%s: listing the tests: %w", t.dir, err)
	}
	slow := regexp.MustCompile(t.slow)
	var judges []judge
	for name := range strings.Lines(listing) {
		j := judge{binary: binary, name: strings.TrimSpace(name), meets: map[int]bool{}}
		j.slow = t.slow != "" && slow.MatchString(j.name)
		if !strings.HasPrefix(j.name, "Test") && !strings.HasPrefix(j.name, "Fuzz") && !strings.HasPrefix(j.name, "Example") {
			continue
		}
		met := filepath.Join(filepath.Dir(binary), "met")
		started := time.Now()
		output, err := t.test(run{binary: binary, seeds: manySeeds, met: met}, "-test.run", "^"+j.name+"$")
		if err != nil {
			return nil, fmt.Errorf("%s: %s fails without any change: %w\n%s", t.dir, j.name, err, output)
		}
		j.took = time.Since(started)
		if err := j.read(met); err != nil {
			return nil, err
		}
		judges = append(judges, j)
	}
	slices.SortStableFunc(judges, func(a, b judge) int { return int(a.took - b.took) })
	return judges, nil
}

// read reads the numbers that the test has left in a file, and removes it. There is none if it has met no mutant.
func (j judge) read(met string) error {
	content, err := os.ReadFile(met) // written by our own test binary
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.FieldsSeq(string(content)) {
		id, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		j.meets[id] = true
	}
	return os.Remove(met)
}

// A test that takes less runs together with others like it, which saves starts of the program; so do those that start an API server.
const quick = 500 * time.Millisecond

// survives reports whether no test that meets the mutant fails for it, the quickest first. With few seeds slow tests wait.
func (t target) survives(id int, judges []judge, seeds int) bool {
	var together []string
	var runs [][]string
	for _, j := range judges {
		switch {
		case !j.meets[id], seeds == fewSeeds && j.slow:
		case j.took < quick, t.server && !j.slow:
			together = append(together, j.name)
		default:
			runs = append(runs, []string{j.name})
		}
	}
	if len(together) > 0 {
		runs = slices.Insert(runs, 0, together)
	}
	for _, names := range runs {
		if _, err := t.test(run{binary: judges[0].binary, id: id, seeds: seeds}, "-test.run", "^("+strings.Join(names, "|")+")$"); err != nil {
			return false
		}
	}
	return true
}
