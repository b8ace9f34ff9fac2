package tilt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
	"sigs.k8s.io/yaml"
)

// call is a call of a Tiltfile that has an effect in Tilt.
type call map[string]starlark.Value

func (c call) text(key string) string {
	s, _ := starlark.AsString(c[key])
	return s
}

func (c call) list(key string) []string {
	var all []string
	if list, ok := c[key].(*starlark.List); ok {
		for v := range list.Elements() {
			s, _ := starlark.AsString(v)
			all = append(all, s)
		}
	}
	return all
}

// evaluation is a Tiltfile that was run with Tilt's functions, of which those that build and deploy are recorded.
type evaluation struct {
	g     *WithT
	dir   string
	files map[string]string
	calls map[string][]call
}

// positional are the names of arguments that Tiltfiles give by place.
var positional = map[string][]string{
	"local_resource": {"name", "cmd"}, "k8s_yaml": {"yaml"}, "docker_build": {"ref", "context"}, "custom_build": {"ref"}, "k8s_resource": {"workload"},
	"local": {"command"}, "sync": {"local", "remote"}, "run": {"cmd"}, "include": {"path"}, "default_registry": {"host"},
	"allow_k8s_contexts": {"contexts"}, "version_settings": {"check_updates", "constraint"}, "trigger_mode": {"mode"},
	"link": {"url", "name"}, "port_forward": {"local", "container"}, "cmd_button": {"name"}, "text_input": {"name"},
}

// evaluate runs a Tiltfile in its directory. files replace those that a Tiltfile has other programs write.
func evaluate(g *WithT, path string, files map[string]string) *evaluation {
	e := &evaluation{g: g, dir: filepath.Dir(path), files: files, calls: map[string][]call{}}
	known := starlark.StringDict{
		"os": module("os", starlark.StringDict{
			"getenv": builtin("getenv", e.getenv), "putenv": builtin("putenv", nothing), "environ": starlark.NewDict(0),
			"path": module("path", starlark.StringDict{"exists": builtin("exists", e.exists)}),
		}),
		"shlex":               module("shlex", starlark.StringDict{"quote": builtin("quote", e.first)}),
		"read_yaml":           builtin("read_yaml", e.readYAML),
		"read_file":           builtin("read_file", e.readFile),
		"read_json":           builtin("read_json", e.readYAML),
		"kustomize":           builtin("kustomize", e.kustomize),
		"decode_yaml_stream":  builtin("decode_yaml_stream", e.decodeStream),
		"listdir":             builtin("listdir", e.empty),
		"TRIGGER_MODE_MANUAL": starlark.String("manual"),
		"local":               builtin("local", e.local),
		"config":              module("config", starlark.StringDict{"main_dir": starlark.String(e.dir)}),
	}
	for name := range positional {
		if _, ok := known[name]; !ok {
			known[name] = builtin(name, e.record)
		}
	}
	thread := &starlark.Thread{Name: path, Load: func(_ *starlark.Thread, _ string) (starlark.StringDict, error) {
		// Extensions of Tilt's: buttons of its page.
		return starlark.StringDict{
			"cmd_button": known["cmd_button"], "text_input": known["text_input"], "location": module("location", starlark.StringDict{"NAV": starlark.None}),
		}, nil
	}}
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	options := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}
	_, err = starlark.ExecFileOptions(options, thread, path, content, known)
	if trace, ok := err.(*starlark.EvalError); ok { //nolint:errorlint // What Exec returns is not wrapped.
		err = fmt.Errorf("%s", trace.Backtrace())
	}
	g.Expect(err).NotTo(HaveOccurred())
	return e
}

func module(name string, members starlark.StringDict) *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: name, Members: members}
}

type function = func(name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)

func builtin(name string, f function) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(
		_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		return f(b.Name(), args, kwargs)
	})
}

func nothing(string, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return starlark.None, nil
}

func (e *evaluation) record(name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	c := call{}
	for i, value := range args {
		if i < len(positional[name]) {
			c[positional[name][i]] = value
		}
	}
	for _, pair := range kwargs {
		c[string(pair[0].(starlark.String))] = pair[1]
	}
	e.calls[name] = append(e.calls[name], c)
	return starlark.String(name), nil
}

// local is a command on the developer's computer, none of which is run.
func (e *evaluation) local(name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	_, err := e.record(name, args, kwargs)
	command, _ := starlark.AsString(args[0])
	for prefix, output := range map[string]string{"go env GOOS": "linux\n", "go env GOARCH": "amd64\n", "command -v": "/usr/bin/kubectl\n"} {
		if strings.HasPrefix(command, prefix) {
			return starlark.String(output), err
		}
	}
	return starlark.String(""), err
}

func (e *evaluation) first(_ string, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return args[0], nil
}

func (e *evaluation) empty(string, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return starlark.NewList(nil), nil
}

func (e *evaluation) getenv(_ string, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 1 {
		return args[1], nil
	}
	return starlark.String(""), nil
}

// kustomize is what `make manifests` has rendered of a directory, under the path of the kustomization in files.
func (e *evaluation) kustomize(_ string, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	name, _ := starlark.AsString(args[0])
	content, ok := e.files["kustomize:"+name]
	if !ok {
		return nil, fmt.Errorf("nothing is rendered of %s", name)
	}
	return starlark.String(content), nil
}

// content is that of a file, and whether there is one.
func (e *evaluation) content(name string) (string, bool) {
	if content, ok := e.files[strings.TrimPrefix(name, "./")]; ok {
		return content, true
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.dir, name)
	}
	content, err := os.ReadFile(name)
	return string(content), err == nil
}

func (e *evaluation) exists(_ string, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	name, _ := starlark.AsString(args[0])
	_, ok := e.content(name)
	return starlark.Bool(ok), nil
}

func (e *evaluation) readFile(_ string, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	name, _ := starlark.AsString(args[0])
	content, ok := e.content(name)
	if !ok {
		return nil, fmt.Errorf("no file %s", name)
	}
	return starlark.String(content), nil
}

func (e *evaluation) readYAML(_ string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	name, _ := starlark.AsString(args[0])
	content, ok := e.content(name)
	if !ok {
		return kwargs[0][1], nil
	}
	return decode(content)
}

func (e *evaluation) decodeStream(_ string, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	content, _ := starlark.AsString(args[0])
	var all []starlark.Value
	for _, document := range strings.Split(content, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		value, err := decode(document)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return starlark.NewList(all), nil
}

func decode(content string) (starlark.Value, error) {
	var value any
	if err := yaml.Unmarshal([]byte(content), &value); err != nil {
		return nil, err
	}
	return toStarlark(value)
}

func toStarlark(value any) (starlark.Value, error) {
	switch v := value.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(v), nil
	case string:
		return starlark.String(v), nil
	case float64:
		return starlark.Float(v), nil
	case []any:
		list := starlark.NewList(nil)
		for _, element := range v {
			converted, err := toStarlark(element)
			if err != nil {
				return nil, err
			}
			if err := list.Append(converted); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		dict := starlark.NewDict(len(v))
		for key, element := range v {
			converted, err := toStarlark(element)
			if err != nil {
				return nil, err
			}
			if err := dict.SetKey(starlark.String(key), converted); err != nil {
				return nil, err
			}
		}
		return dict, nil
	}
	return nil, fmt.Errorf("unexpected %T in YAML", value)
}
