package systemd

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// unit is a loaded service unit with its drop-ins applied.
type unit struct {
	name, description string
	kind              string // simple or oneshot
	startPre          []command
	start             []command
	startPost         []command
	stopCommands      []command
	environment       []string
	environmentFiles  []string
	workingDirectory  string
	restart           string
	restartDelay      time.Duration
	runtimeMax        time.Duration
	timeoutStop       time.Duration
	remainAfterExit   bool
	startInterval     time.Duration
	startBurst        int
	wantedBy          []string
	// ignored are the keys that the simulated service manager ignores.
	ignored []string
}

// command is one Exec line.
type command struct {
	words []string
	// ignoreFailure is the prefix "-".
	ignoreFailure bool
}

// infinite means no limit.
const infinite = time.Duration(0)

func newUnit(name string) *unit {
	return &unit{
		name: name, kind: "simple", restart: "no", restartDelay: 100 * time.Millisecond, timeoutStop: 90 * time.Second,
		startInterval: 10 * time.Second, startBurst: 5,
	}
}

// unitDirectories are searched in their order, below the root.
var unitDirectories = []string{
	"etc/systemd/system",
	"run/systemd/system",
	"usr/local/lib/systemd/system",
	"usr/lib/systemd/system",
	"lib/systemd/system",
}

// errNotFound says that no unit file exists.
var errNotFound = errors.New("not found")

// loadUnit reads a unit and its drop-ins from the directories below the root.
func loadUnit(root, name string) (*unit, error) {
	template := templateOf(name)
	file := unitFile(root, name)
	if file == "" {
		file = unitFile(root, template)
	}
	if file == "" {
		return nil, errors.Wrapf(errNotFound, "unit %s", name)
	}
	u := newUnit(name)
	for _, path := range slices.Concat([]string{file}, dropIns(root, template), dropIns(root, name)) {
		if err := u.apply(path); err != nil {
			return nil, errors.Wrapf(err, "unit %s, file %s", name, filepath.Base(path))
		}
	}
	if filepath.Ext(name) != ".service" {
		// Mounts, timers and the like are started and do nothing.
		u.kind, u.remainAfterExit, u.start = "oneshot", true, []command{{words: []string{"/bin/true"}}}
	}
	if len(u.start) == 0 {
		return nil, errors.Errorf("unit %s has no ExecStart", name)
	}
	if u.kind != "oneshot" && len(u.start) > 1 {
		return nil, errors.Errorf("unit %s has more than one ExecStart, which is for Type=oneshot only", name)
	}
	return u, nil
}

// unitFile returns the path of a unit's file; empty when there is none.
func unitFile(root, name string) string {
	for _, directory := range unitDirectories {
		path := filepath.Join(root, directory, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// templateOf returns the template that a unit is an instance of; empty when it is none.
func templateOf(name string) string {
	prefix, _, found := strings.Cut(name, "@")
	if !found {
		return ""
	}
	return prefix + "@" + filepath.Ext(name)
}

// dropIns are the files of <unit>.d in all directories, ordered by their names; the first directory wins.
func dropIns(root, name string) []string {
	if name == "" {
		return nil
	}
	byName := map[string]string{}
	for _, directory := range unitDirectories {
		found, err := filepath.Glob(filepath.Join(root, directory, name+".d", "*.conf"))
		if err != nil {
			continue
		}
		for _, path := range found {
			if _, ok := byName[filepath.Base(path)]; !ok {
				byName[filepath.Base(path)] = path
			}
		}
	}
	names := make([]string, 0, len(byName))
	for n := range byName {
		names = append(names, n)
	}
	slices.Sort(names)
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, byName[n])
	}
	return out
}

func (u *unit) apply(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return errors.Wrap(err, "opening")
	}
	defer func() { _ = file.Close() }()
	settings, err := parseFile(file)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if err := u.set(s); err != nil {
			return errors.Wrapf(err, "%s=", s.key)
		}
	}
	return nil
}

// set takes one assignment. Lists grow with each; an empty value empties them.
func (u *unit) set(s setting) error {
	if target := u.commandList(s.key); s.section == "Service" && target != nil {
		return setCommand(target, s.value)
	}
	if target := u.stringList(s.section, s.key); target != nil {
		if s.value == "" {
			*target = nil
			return nil
		}
		words, err := splitWords(u.specifiers(s.value))
		*target = append(*target, words...)
		return err
	}
	if target := u.duration(s.section, s.key); target != nil {
		d, err := parseSpan(s.value)
		*target = d
		return err
	}
	return u.setPlain(s)
}

func (u *unit) setPlain(s setting) error {
	var err error
	switch s.section + "." + s.key {
	case "Unit.Description":
		u.description = u.specifiers(s.value)
	case "Unit.StartLimitBurst":
		u.startBurst, err = strconv.Atoi(s.value)
	case "Service.Type":
		u.kind = s.value
		switch s.value {
		case "simple", "exec", "oneshot":
		default:
			return errors.Errorf("type %s is not simulated", s.value)
		}
	case "Service.Restart":
		u.restart = s.value
		if !slices.Contains([]string{"no", "always", "on-failure"}, s.value) {
			return errors.Errorf("%s is not simulated", s.value)
		}
	case "Service.RemainAfterExit":
		u.remainAfterExit = slices.Contains([]string{"yes", "true", "on", "1"}, s.value)
	case "Service.WorkingDirectory":
		u.workingDirectory = u.specifiers(s.value)
	default:
		u.ignored = append(u.ignored, s.key)
	}
	return err
}

func (u *unit) commandList(key string) *[]command {
	return map[string]*[]command{
		"ExecStartPre": &u.startPre, "ExecStart": &u.start, "ExecStartPost": &u.startPost, "ExecStop": &u.stopCommands,
	}[key]
}

func (u *unit) stringList(section, key string) *[]string {
	return map[string]*[]string{
		"Service.Environment": &u.environment, "Service.EnvironmentFile": &u.environmentFiles, "Install.WantedBy": &u.wantedBy,
	}[section+"."+key]
}

func (u *unit) duration(section, key string) *time.Duration {
	return map[string]*time.Duration{
		"Service.RestartSec": &u.restartDelay, "Service.RuntimeMaxSec": &u.runtimeMax, "Service.TimeoutStopSec": &u.timeoutStop,
		"Unit.StartLimitIntervalSec": &u.startInterval,
	}[section+"."+key]
}

func setCommand(list *[]command, value string) error {
	if value == "" {
		*list = nil
		return nil
	}
	words, err := splitWords(value)
	if err != nil {
		return err
	}
	prefix := len(words[0]) - len(strings.TrimLeft(words[0], "@-:+!"))
	c := command{words: words, ignoreFailure: strings.Contains(words[0][:prefix], "-")}
	c.words[0] = words[0][prefix:]
	if c.words[0] == "" {
		return errors.New("no program")
	}
	*list = append(*list, c)
	return nil
}

// specifiers replaces the few specifiers that are simulated: the unit's names.
func (u *unit) specifiers(value string) string {
	bare := strings.TrimSuffix(u.name, ".service")
	prefix, instance, _ := strings.Cut(bare, "@")
	return strings.NewReplacer("%%", "%", "%n", u.name, "%N", bare, "%p", prefix, "%i", instance).Replace(value)
}

var spanUnits = map[string]time.Duration{
	"": time.Second, "s": time.Second, "sec": time.Second, "seconds": time.Second, "ms": time.Millisecond, "msec": time.Millisecond,
	"m": time.Minute, "min": time.Minute, "minutes": time.Minute, "h": time.Hour, "hr": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "days": 24 * time.Hour,
}

// parseSpan reads a time span such as "5", "1min 30s" or "infinity", see
// https://www.freedesktop.org/software/systemd/man/latest/systemd.time.html.
func parseSpan(value string) (time.Duration, error) {
	if value == "" || value == "infinity" {
		return infinite, nil
	}
	var total time.Duration
	rest := strings.ReplaceAll(value, " ", "")
	for rest != "" {
		digits := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if digits < 0 {
			digits = len(rest)
		}
		number, err := strconv.ParseFloat(rest[:digits], 64)
		if err != nil {
			return 0, errors.Errorf("%q is no time span", value)
		}
		rest = rest[digits:]
		letters := strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' })
		if letters < 0 {
			letters = len(rest)
		}
		scale, ok := spanUnits[rest[:letters]]
		if !ok {
			return 0, errors.Errorf("%q is no time span", value)
		}
		total += time.Duration(number * float64(scale))
		rest = rest[letters:]
	}
	return total, nil
}
