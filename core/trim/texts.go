package trim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxShared bounds how many texts, and how many maps, are remembered. A core sees some hundreds that repeat.
	maxShared = 8192
	// maxText is the length up to which a text is worth remembering, and maxMap that of all texts of a map. What is
	// longer is mostly about one object.
	maxText, maxMap = 100, 600
)

var (
	texts   pool[string]
	labels  pool[map[string]string]
	objects pool[map[string]any]
)

// Text returns the one copy of a text that many objects have: a field name, the type of a condition, a label. It is
// not for what names a single object.
func Text(text string) string {
	if text == "" || len(text) > maxText {
		return text
	}
	return texts.one(text, func() string { return text })
}

// Map returns the one copy of a map of such texts; nil for an empty one. It must not be written to, like all that
// is cached.
func Map(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	own := func() map[string]string {
		shared := make(map[string]string, len(values))
		for key, value := range values {
			shared[Text(key)] = Text(value)
		}
		return shared
	}
	key := identity(values, func(value string) (string, bool) { return value, true })
	if key == "" {
		return own()
	}
	return labels.one(key, own)
}

// Object returns the one copy of an object of JSON that has nothing but such texts and booleans in it, and false for
// any other. It must not be written to, like all that is cached.
func Object(values map[string]any) (map[string]any, bool) {
	key := identity(values, func(value any) (string, bool) {
		switch typed := value.(type) {
		case bool:
			if typed {
				return "t", true
			}
			return "f", true
		case string:
			return `"` + typed, true
		}
		return "", false
	})
	if key == "" {
		return nil, false
	}
	return objects.one(key, func() map[string]any {
		shared := make(map[string]any, len(values))
		for key, value := range values {
			if text, ok := value.(string); ok {
				value = Text(text)
			}
			shared[Text(key)] = value
		}
		return shared
	}), true
}

// identity is a text that maps with the same content have, and others do not; "" when there is none.
func identity[V any](values map[string]V, text func(V) (string, bool)) string {
	var all strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, ok := text(values[key])
		if !ok {
			return ""
		}
		// With their lengths, as a text may have any character in it.
		for _, part := range []string{key, value} {
			all.WriteString(strconv.Itoa(len(part)))
			all.WriteByte(':')
			all.WriteString(part)
		}
		if all.Len() > maxMap {
			return ""
		}
	}
	return all.String()
}

// share replaces texts by their one copy.
func share(fields ...*string) {
	for _, field := range fields {
		*field = Text(*field)
	}
}

// pool remembers values by a text that identifies them. The zero value is ready for use, also by several goroutines.
type pool[V any] struct {
	mutex sync.RWMutex
	known map[string]V
}

// one returns the value that is remembered for the key, and else remembers what make makes.
func (p *pool[V]) one(key string, make func() V) V {
	p.mutex.RLock()
	known, found := p.known[key]
	p.mutex.RUnlock()
	if found {
		return known
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if known, found = p.known[key]; found {
		return known
	}
	if p.known == nil || len(p.known) >= maxShared {
		// What repeats is soon back, and what does not must not be kept for ever.
		p.known = map[string]V{}
	}
	value := make()
	p.known[key] = value
	return value
}
