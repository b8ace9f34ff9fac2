package compute

import (
	"net/http"
	"regexp"
	"strings"
)

// filter is an expression of the parameter filter, which the references of the list methods describe: comparisons with = != : > < are
// combined by AND, OR, NOT and parentheses, without any by AND. Comparisons of numbers and of times are not simulated.
type filter func(map[string]any) bool

var filterToken = regexp.MustCompile(`^\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[()]|!=|<=|>=|=|:|<|>|[^\s()=:!<>"']+)`)

// parseFilter returns nil for an empty text, which selects everything.
func parseFilter(text string) (filter, error) {
	p := &filterParser{text: text}
	for rest := text; strings.TrimSpace(rest) != ""; {
		token := filterToken.FindStringSubmatch(rest)
		if token == nil {
			return nil, p.invalid()
		}
		p.tokens, rest = append(p.tokens, token[1]), rest[len(token[0]):]
	}
	if len(p.tokens) == 0 {
		return nil, nil
	}
	found, err := p.either()
	if err == nil && len(p.tokens) > 0 {
		err = p.invalid()
	}
	return found, err
}

type filterParser struct {
	text   string
	tokens []string
}

func (p *filterParser) invalid() error {
	return fail(http.StatusBadRequest, "invalid", "Invalid list filter expression: %s", p.text)
}

func (p *filterParser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

func (p *filterParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

// either is a sequence of alternatives.
func (p *filterParser) either() (filter, error) {
	left, err := p.both()
	for err == nil && p.peek() == "OR" {
		p.next()
		a, b := left, filter(nil)
		if b, err = p.both(); err == nil {
			left = func(v map[string]any) bool { return a(v) || b(v) }
		}
	}
	return left, err
}

// both is a sequence of what must hold together.
func (p *filterParser) both() (filter, error) {
	left, err := p.term()
	for err == nil && p.peek() != "" && p.peek() != "OR" && p.peek() != ")" {
		if p.peek() == "AND" {
			p.next()
		}
		a, b := left, filter(nil)
		if b, err = p.term(); err == nil {
			left = func(v map[string]any) bool { return a(v) && b(v) }
		}
	}
	return left, err
}

func (p *filterParser) term() (filter, error) {
	switch token := p.next(); token {
	case "(":
		inner, err := p.either()
		if err == nil && p.next() != ")" {
			err = p.invalid()
		}
		return inner, err
	case "NOT":
		inner, err := p.term()
		return func(v map[string]any) bool { return !inner(v) }, err
	case "", ")", "=", ":", "!=", "AND", "OR":
		return nil, p.invalid()
	default:
		return p.comparison(token)
	}
}

func (p *filterParser) comparison(field string) (filter, error) {
	operator, value := p.next(), p.next()
	if value == "" || value == "(" || value == ")" {
		return nil, p.invalid()
	}
	value = unquoted(value)
	path := strings.Split(field, ".")
	switch operator {
	case "=":
		return func(v map[string]any) bool { return someValue(v, path, func(got string) bool { return got == value }) }, nil
	case "!=":
		return func(v map[string]any) bool { return !someValue(v, path, func(got string) bool { return got == value }) }, nil
	case ":":
		return func(v map[string]any) bool {
			return someValue(v, path, func(got string) bool { return value == "*" || strings.Contains(got, value) })
		}, nil
	}
	return nil, p.invalid()
}

func unquoted(token string) string {
	if len(token) > 1 && (token[0] == '"' || token[0] == '\'') {
		return regexp.MustCompile(`\\(.)`).ReplaceAllString(token[1:len(token)-1], "$1")
	}
	return token
}

// someValue returns whether the value at a path, or one of a list, is as wanted.
func someValue(v any, path []string, wanted func(string) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(path) == 0 {
			return false
		}
		inner, ok := v[path[0]]
		return ok && someValue(inner, path[1:], wanted)
	case []any:
		for _, item := range v {
			if someValue(item, path, wanted) {
				return true
			}
		}
		return false
	case string:
		return len(path) == 0 && wanted(v)
	case bool:
		return len(path) == 0 && wanted(map[bool]string{true: "true", false: "false"}[v])
	}
	return false
}
