package compute

import (
	"net/http"
	"strings"
)

// fieldMask is the parameter fields: a list of names, each perhaps with a path or a sublist in parentheses; * is every name. An empty mask
// selects everything. See https://cloud.google.com/compute/docs/api/how-tos/performance#partial.
type fieldMask map[string]fieldMask

func parseFields(text string) (fieldMask, error) {
	mask, rest := fields(strings.ReplaceAll(text, " ", ""))
	if rest != "" {
		return nil, fail(http.StatusBadRequest, "invalidParameter", "Invalid field selection %s", text)
	}
	return mask, nil
}

// fields reads a list up to its end or a closing parenthesis, and returns what follows.
func fields(text string) (fieldMask, string) {
	mask := fieldMask{}
	for text != "" && text[0] != ')' {
		end := strings.IndexAny(text, ",/()")
		if end < 0 {
			end = len(text)
		}
		name := text[:end]
		text = text[end:]
		inner := fieldMask{}
		switch {
		case strings.HasPrefix(text, "/"):
			end := pathEnd(text[1:])
			inner, _ = fields(text[1 : end+1])
			text = text[end+1:]
		case strings.HasPrefix(text, "("):
			inner, text = fields(text[1:])
			text = strings.TrimPrefix(text, ")")
		}
		mask.add(name, inner)
		text = strings.TrimPrefix(text, ",")
	}
	return mask, text
}

// pathEnd is where the rest of a path ends: at a comma or a parenthesis that closes more than it has opened.
func pathEnd(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

func (m fieldMask) add(name string, inner fieldMask) {
	if m[name] == nil {
		m[name] = inner
		return
	}
	for k, v := range inner {
		m[name].add(k, v)
	}
}

// apply removes what the mask does not select.
func (m fieldMask) apply(v any) any {
	if len(m) == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, value := range v {
			inner, ok := m[k]
			if !ok {
				inner, ok = m["*"]
			}
			if ok {
				out[k] = inner.apply(value)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, m.apply(item))
		}
		return out
	}
	return v
}
