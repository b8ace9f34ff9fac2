package systemd

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// socketDirectory is where the socket of the service manager lies, below the root.
const socketDirectory = "sim"

const socketName = "systemd.sock"

// request is what systemctl sends, one on each connection.
type request struct {
	Verb    string   `json:"verb"`
	Units   []string `json:"units"`
	Now     bool     `json:"now"`
	NoBlock bool     `json:"noBlock"`
}

// response is what it gets.
type response struct {
	Code   int    `json:"code"`
	Output string `json:"output"`
	Error  string `json:"error"`
}

// Serve answers systemctl until the listener is closed. A request is completed even when
// its client is killed meanwhile: a service may restart itself.
func (m *Manager) Serve() (net.Listener, error) {
	var listener net.Listener
	err := inDirectory(string(m.root), func(path string) (err error) {
		listener, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, errors.Wrap(err, "listening for systemctl")
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go m.answer(connection)
		}
	}()
	return listener, nil
}

// inDirectory calls f with a path of the socket that is short whatever the root: the path of a Unix
// socket has room for some hundred characters only.
func inDirectory(root string, f func(path string) error) error {
	directory, err := os.Open(filepath.Join(root, socketDirectory))
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", directory.Fd(), socketName))
}

func (m *Manager) answer(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	var q request
	if err := json.NewDecoder(connection).Decode(&q); err != nil {
		return
	}
	_ = json.NewEncoder(connection).Encode(m.do(q))
}

// do executes a request on each of its units; the worst exit code counts.
func (m *Manager) do(q request) response {
	if q.Verb == "daemon-reload" {
		return outcome(m.Reload())
	}
	if len(q.Units) == 0 {
		return response{Code: 1, Error: "Too few arguments."}
	}
	var all response
	for _, name := range q.Units {
		if !strings.Contains(name, ".") {
			name += ".service"
		}
		one := m.doUnit(q, name)
		all.Output += one.Output
		if one.Code != 0 {
			all.Code, all.Error = one.Code, strings.TrimSpace(all.Error+"\n"+one.Error)
		}
	}
	return all
}

func (m *Manager) doUnit(q request, name string) response {
	switch q.Verb {
	case "start":
		return outcome(m.Start(name, q.NoBlock))
	case "stop":
		return outcome(m.Stop(name, q.NoBlock))
	case "restart", "reload-or-restart":
		return outcome(m.Restart(name, q.NoBlock, false))
	case "try-restart", "condrestart":
		return outcome(m.Restart(name, q.NoBlock, true))
	case "reset-failed":
		return outcome(m.ResetFailed(name))
	case "enable":
		if err := m.Enable(name); err != nil || !q.Now {
			return asOne(err)
		}
		return outcome(m.Start(name, q.NoBlock))
	case "disable":
		if err := m.Disable(name); err != nil || !q.Now {
			return asOne(err)
		}
		return outcome(m.Stop(name, q.NoBlock))
	case "is-enabled":
		if m.Enabled(name) {
			return response{Output: "enabled\n"}
		}
		return response{Code: 1, Output: "disabled\n"}
	}
	return m.ask(q.Verb, name)
}

// ask answers the verbs that only read. The exit codes are those of systemctl(1).
func (m *Manager) ask(verb, name string) response {
	current := m.State(name)
	switch verb {
	case "is-active":
		return response{Code: codeUnless(current == string(active), 3), Output: current + "\n"}
	case "is-failed":
		return response{Code: codeUnless(current == string(failed), 1), Output: current + "\n"}
	case "status":
		if _, err := m.get(name); err != nil {
			return response{Code: 4, Error: fmt.Sprintf("Unit %s could not be found.", name)}
		}
		return response{Code: codeUnless(current == string(active), 3), Output: m.Status(name)}
	}
	return response{Code: 1, Error: fmt.Sprintf("The verb %s is not simulated.", verb)}
}

func codeUnless(ok bool, code int) int {
	if ok {
		return 0
	}
	return code
}

// outcome is the answer of a verb that does something: 5 for a unit that does not exist.
func outcome(err error) response {
	switch {
	case err == nil:
		return response{}
	case errors.Is(err, errNotFound):
		return response{Code: 5, Error: "Failed: " + err.Error()}
	}
	return response{Code: 1, Error: err.Error()}
}

func asOne(err error) response {
	if err == nil {
		return response{}
	}
	return response{Code: 1, Error: err.Error()}
}

// Systemctl is the command: it sends the arguments to the service manager of the machine with the
// root, and returns the exit code with what is to be written to the two output streams.
func Systemctl(root string, arguments []string) (code int, output, problem string) {
	q, quiet, err := parseArguments(arguments)
	if err != nil {
		return 1, "", err.Error()
	}
	var r response
	err = inDirectory(root, func(path string) error {
		connection, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close() }()
		if err := json.NewEncoder(connection).Encode(q); err != nil {
			return err
		}
		return json.NewDecoder(connection).Decode(&r)
	})
	if err != nil {
		return 1, "", "Failed to connect to the service manager: " + err.Error()
	}
	if quiet {
		r.Output = ""
	}
	return r.Code, r.Output, r.Error
}

// parseArguments reads a systemctl command line.
func parseArguments(arguments []string) (q request, quiet bool, err error) {
	for _, a := range arguments {
		switch {
		case a == "--now":
			q.Now = true
		case a == "--no-block":
			q.NoBlock = true
		case a == "--quiet" || a == "-q":
			quiet = true
		case a == "--no-pager" || a == "--no-ask-password" || a == "--system" || a == "--full" || a == "-l":
		case strings.HasPrefix(a, "-"):
			return q, quiet, errors.Errorf("systemctl: the option %s is not simulated", a)
		case q.Verb == "":
			q.Verb = a
		default:
			q.Units = append(q.Units, a)
		}
	}
	if q.Verb == "" {
		return q, quiet, errors.New("systemctl: no verb")
	}
	return q, quiet, nil
}
