package systemd

import (
	"bufio"
	"io"
	"strings"

	"github.com/pkg/errors"
)

// setting is one assignment of a unit file.
type setting struct{ section, key, value string }

// parseFile reads a unit file or a drop-in: sections, assignments, comments and lines continued by a
// backslash; see https://www.freedesktop.org/software/systemd/man/latest/systemd.syntax.html.
func parseFile(r io.Reader) ([]setting, error) {
	var out []setting
	section, pending := "", ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";")
		if comment || line == "" && pending == "" {
			// A comment within a continued line is skipped.
			continue
		}
		if rest, ok := strings.CutSuffix(line, `\`); ok {
			pending += rest + " "
			continue
		}
		line, pending = pending+line, ""
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = line[1 : len(line)-1]
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			return nil, errors.Errorf("line %q is neither a section nor an assignment in one", line)
		}
		out = append(out, setting{section, strings.TrimSpace(key), strings.TrimSpace(value)})
	}
	return out, errors.Wrap(lines.Err(), "reading a unit file")
}

// splitWords splits a value at white space and removes quotes and backslashes, by systemd's rules
// of quoting as far as they are the shell's.
func splitWords(value string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	for _, r := range value {
		switch {
		case escaped:
			word.WriteString(unescape(r))
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.Errorf("unbalanced quoting in %q", value)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

func unescape(r rune) string {
	switch r {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 's':
		return " "
	}
	return string(r)
}
