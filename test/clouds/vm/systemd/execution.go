package systemd

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/pkg/errors"

	"millwright.dev/test/clouds/vm/spawn"
)

// execution is one run of a unit's commands: their environment and where their output goes.
type execution struct {
	manager *Manager
	unit    *unit
	env     []string
	// invocation marks all programs of the run, so that they can be killed as a control group is.
	invocation string
	output     *os.File
}

// prepare opens the log and builds the environment: the machine's, then Environment=, then the
// files, later ones over earlier ones.
func (m *Manager) prepare(u *unit) (*execution, error) {
	x := &execution{manager: m, unit: u, invocation: "INVOCATION_ID=" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	x.env = append(append([]string{}, m.env...), x.invocation)
	x.env = append(x.env, u.environment...)
	for _, path := range u.environmentFiles {
		path, optional := strings.CutPrefix(path, "-")
		more, err := readEnvironment(m.root.Map(path))
		if errors.Is(err, os.ErrNotExist) && optional {
			continue
		}
		if err != nil {
			return nil, errors.Wrapf(err, "reading the environment file %s", path)
		}
		x.env = append(x.env, more...)
	}
	output, err := m.openLog(u.name)
	x.output = output
	return x, err
}

// openLog returns a pipe whose lines go to the unit's log file and to the console. It lives as long as
// any program holds it.
func (m *Manager) openLog(name string) (*os.File, error) {
	file, err := os.OpenFile(m.root.Path(filepath.Join("var/log", name+".log")), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, errors.Wrapf(err, "opening the log of %s", name)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, errors.Wrapf(err, "opening the log of %s", name)
	}
	go func() {
		defer func() { _ = file.Close() }()
		defer func() { _ = reader.Close() }()
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				_, _ = file.WriteString(line)
				m.logf("%s: %s", name, strings.TrimRight(line, "\n"))
			}
			if err != nil {
				return
			}
		}
	}()
	return writer, nil
}

func (x *execution) close() { _ = x.output.Close() }

// killGroup kills what the service has left, whatever group it has moved to.
func (x *execution) killGroup() { spawn.KillMarked(x.invocation) }

// start runs a command with its variables and paths replaced.
func (x *execution) start(c command) (*spawn.Child, error) {
	var words []string
	for _, word := range c.words {
		words = append(words, expand(x.unit.specifiers(word), x.env)...)
	}
	for i := range words {
		words[i] = x.manager.root.Map(words[i])
	}
	dir := "/"
	if x.unit.workingDirectory != "" {
		dir = x.manager.root.Map(strings.TrimPrefix(x.unit.workingDirectory, "-"))
	}
	return x.manager.spawner.Start(spawn.Command{Path: words[0], Args: words[1:], Env: x.env, Dir: dir, Output: x.output})
}

var (
	wholeVariable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)$`)
	variable      = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// expand replaces variables as systemd does: $NAME as a word of its own becomes the words of the
// value, none for an empty one; ${NAME} anywhere becomes the value; $$ is a dollar sign.
func expand(word string, env []string) []string {
	if m := wholeVariable.FindStringSubmatch(word); m != nil {
		return strings.Fields(lookup(env, m[1]))
	}
	return []string{variable.ReplaceAllStringFunc(word, func(found string) string {
		if found == "$$" {
			return "$"
		}
		return lookup(env, found[2:len(found)-1])
	})}
}

func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// readEnvironment reads an EnvironmentFile: lines of NAME=value, with comments and quotes.
func readEnvironment(path string) ([]string, error) {
	raw, err := os.ReadFile(path) // The machine's own file.
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		words, err := splitWords(value)
		if err != nil {
			return nil, err
		}
		out = append(out, strings.TrimSpace(name)+"="+strings.Join(words, " "))
	}
	return out, nil
}
