package curl

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// options are those of the command line and of the configuration files.
type options struct {
	url, method, output, dumpHeader, writeFormat string
	silent, showError, fail                      bool
	maxTime, connectTimeout                      time.Duration
	caCert, cert, key                            string
	headers                                      []string
	data                                         *string
}

// shortNames are the long names of the options with one letter.
var shortNames = map[byte]string{
	's': "silent", 'S': "show-error", 'f': "fail", 'H': "header", 'o': "output", 'w': "write-out", 'X': "request", 'd': "data",
	'D': "dump-header", 'K': "config", 'm': "max-time", 'E': "cert",
}

// parse reads a command line. The code is the exit code for the error.
func (o *options) parse(arguments []string, stdin io.Reader) (int, error) {
	for i := 0; i < len(arguments); i++ {
		a := arguments[i]
		next := func() (string, bool) {
			if i+1 >= len(arguments) {
				return "", false
			}
			i++
			return arguments[i], true
		}
		switch {
		case strings.HasPrefix(a, "--"):
			if code, err := o.set(a[2:], next, stdin); err != nil {
				return code, err
			}
		case len(a) > 1 && a[0] == '-':
			if code, err := o.parseShort(a[1:], next, stdin); err != nil {
				return code, err
			}
		case o.url != "":
			return exitUsage, errors.New("more than one URL is not simulated")
		default:
			o.url = a
		}
	}
	return exitOK, nil
}

// parseShort reads options of one letter each; the last may have its value attached.
func (o *options) parseShort(letters string, next func() (string, bool), stdin io.Reader) (int, error) {
	for n := 0; n < len(letters); n++ {
		name, ok := shortNames[letters[n]]
		if !ok {
			return exitUsage, errors.Errorf("option -%c: is unknown", letters[n])
		}
		rest := letters[n+1:]
		used := false
		value := func() (string, bool) {
			if rest == "" {
				return next()
			}
			used = true
			return rest, true
		}
		if code, err := o.set(name, value, stdin); err != nil {
			return code, err
		}
		if used {
			break
		}
	}
	return exitOK, nil
}

// set takes one option by its long name.
func (o *options) set(name string, next func() (string, bool), stdin io.Reader) (int, error) {
	if flag := o.flag(name); flag != nil {
		*flag = true
		return exitOK, nil
	}
	value, ok := next()
	if !ok {
		return exitUsage, errors.Errorf("option --%s: requires parameter", name)
	}
	if target := o.text(name); target != nil {
		*target = value
		return exitOK, nil
	}
	switch name {
	case "header":
		o.headers = append(o.headers, value)
	case "data", "data-raw", "data-binary":
		return o.addData(name, value, stdin)
	case "max-time":
		return seconds(value, &o.maxTime)
	case "connect-timeout":
		return seconds(value, &o.connectTimeout)
	case "config":
		return o.readConfig(value, stdin)
	default:
		return exitUsage, errors.Errorf("option --%s: is unknown", name)
	}
	return exitOK, nil
}

func (o *options) flag(name string) *bool {
	return map[string]*bool{"silent": &o.silent, "show-error": &o.showError, "fail": &o.fail}[name]
}

func (o *options) text(name string) *string {
	return map[string]*string{
		"url": &o.url, "request": &o.method, "output": &o.output, "dump-header": &o.dumpHeader, "write-out": &o.writeFormat,
		"cacert": &o.caCert, "cert": &o.cert, "key": &o.key,
	}[name]
}

func seconds(value string, target *time.Duration) (int, error) {
	number, err := strconv.ParseFloat(value, 64)
	if err != nil || number < 0 {
		return exitUsage, errors.Errorf("expected a proper number of seconds, not %q", value)
	}
	*target = time.Duration(number * float64(time.Second))
	return exitOK, nil
}

// addData appends to the body: the value, or the file after "@". Line ends of files go with --data.
func (o *options) addData(name, value string, stdin io.Reader) (int, error) {
	if path, ok := strings.CutPrefix(value, "@"); ok && name != "data-raw" {
		raw, err := readInput(path, stdin)
		if err != nil {
			return exitRead, err
		}
		value = string(raw)
		if name == "data" {
			value = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(value)
		}
	}
	if o.data != nil {
		value = *o.data + "&" + value
	}
	o.data = &value
	return exitOK, nil
}

// readConfig reads a file of options, one on each line: name = "value", name value, or a name alone,
// with or without the dashes.
func (o *options) readConfig(path string, stdin io.Reader) (int, error) {
	raw, err := readInput(path, stdin)
	if err != nil {
		return exitRead, err
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, " \t=:")
		name, value := line, ""
		if end >= 0 {
			name = line[:end]
			value = strings.TrimLeft(line[end:], " \t=:")
		}
		value = unquote(value)
		given := func() (string, bool) { return value, end >= 0 }
		if long, ok := strings.CutPrefix(name, "--"); ok {
			name = long
		} else if short, ok := strings.CutPrefix(name, "-"); ok && len(short) == 1 {
			name = shortNames[short[0]]
		}
		if code, err := o.set(name, given, stdin); err != nil {
			return code, err
		}
	}
	return exitOK, nil
}

// unquote removes the quotes and the escapes of a value of a configuration file.
func unquote(value string) string {
	if !strings.HasPrefix(value, `"`) {
		word, _, _ := strings.Cut(value, " ")
		return word
	}
	var out strings.Builder
	escaped := false
	for _, r := range value[1:] {
		switch {
		case escaped:
			out.WriteString(map[rune]string{'n': "\n", 't': "\t", 'r': "\r", 'v': "\v"}[r])
			if !strings.ContainsRune("ntrv", r) {
				out.WriteRune(r)
			}
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			return out.String()
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// headerLines are the header lines, those of files ("@file") among them.
func (o *options) headerLines(stdin io.Reader) ([]string, int, error) {
	var out []string
	for _, h := range o.headers {
		path, ok := strings.CutPrefix(h, "@")
		if !ok {
			out = append(out, h)
			continue
		}
		raw, err := readInput(path, stdin)
		if err != nil {
			return nil, exitRead, err
		}
		for line := range strings.Lines(string(raw)) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out, exitOK, nil
}

func readInput(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path) // As curl does.
}
