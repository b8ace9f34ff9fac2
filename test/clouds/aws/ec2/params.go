package ec2

import (
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// params are the values of a Query request by their dotted names. A list is Name.1, Name.2, …, a
// structure Name.Member; see https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html.
type params map[string]string

func newParams(form url.Values) params {
	p := make(params, len(form))
	for name := range form {
		p[name] = form.Get(name)
	}
	return p
}

func (p params) has(name string) bool { _, ok := p[name]; return ok }

// str is the value, or the fallback when the parameter is absent.
func (p params) str(name, fallback string) string {
	if v, ok := p[name]; ok {
		return v
	}
	return fallback
}

// group is the structure below the name.
func (p params) group(name string) params {
	out := params{}
	for k, v := range p {
		if rest, ok := strings.CutPrefix(k, name+"."); ok {
			out[rest] = v
		}
	}
	return out
}

// list is the list of structures below the name, in the order of their numbers.
func (p params) list(name string) []params {
	byIndex := map[int]params{}
	for k, v := range p.group(name) {
		index, rest, _ := strings.Cut(k, ".")
		n, err := strconv.Atoi(index)
		if err != nil {
			continue
		}
		if byIndex[n] == nil {
			byIndex[n] = params{}
		}
		byIndex[n][rest] = v
	}
	indices := make([]int, 0, len(byIndex))
	for n := range byIndex {
		indices = append(indices, n)
	}
	sort.Ints(indices)
	out := make([]params, 0, len(indices))
	for _, n := range indices {
		out = append(out, byIndex[n])
	}
	return out
}

// strings is the list of plain values below the name.
func (p params) strings(name string) []string {
	items := p.list(name)
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item[""])
	}
	return out
}

// number is the integer, or the fallback when the parameter is absent.
func (p params) number(name string, fallback int) (int, error) {
	v, ok := p[name]
	if !ok {
		return fallback, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, invalidValue(v, name, "Must be an integer.")
	}
	return n, nil
}

// boolean is the truth value, or the fallback when the parameter is absent.
func (p params) boolean(name string, fallback bool) (bool, error) {
	v, ok := p[name]
	if !ok {
		return fallback, nil
	}
	switch strings.ToLower(v) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, invalidValue(v, name, "Must be true or false.")
}

// dryRun reports whether the request only asks if it would succeed.
func (p params) dryRun() bool { return strings.EqualFold(p["DryRun"], "true") }

// unknown is the first parameter, in alphabetical order, whose first name is not among the accepted.
func (p params) unknown(accepted []string) string {
	known := map[string]bool{"Action": true, "Version": true, "DryRun": true}
	for _, name := range accepted {
		known[name] = true
	}
	var found string
	for k := range p {
		head, _, _ := strings.Cut(k, ".")
		if !known[head] && (found == "" || k < found) {
			found = k
		}
	}
	return found
}
