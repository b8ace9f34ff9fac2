package sandbox

import (
	"bufio"
	"io"
	"os"
	"strings"

	"github.com/pkg/errors"
)

// refused is the message of an API server about a missing right, as it appears in logs; ending is its message about
// a namespace that is being deleted, in which nothing can be created.
const (
	refused = "is forbidden: "
	ending  = "because it is being terminated"
)

// Forbidden are the lines in the managers' logs since the last call by which a right is missing
// in an install manifest. A manager tries again, so nothing else may show it.
func (s *Sandbox) Forbidden() ([]string, error) {
	var lines []string
	for _, m := range s.managers() {
		found, err := m.forbidden()
		if err != nil {
			return nil, errors.Wrapf(err, "reading the log of %s", m.Name)
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func (m *Manager) forbidden() ([]string, error) {
	file, err := os.Open(m.Log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(m.readLog, io.SeekStart); err != nil {
		return nil, err
	}
	var lines []string
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			// What follows the last line end is still being written.
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		m.readLog += int64(len(line))
		if strings.Contains(line, refused) && !strings.Contains(line, ending) {
			lines = append(lines, m.Name+": "+strings.TrimSpace(line))
		}
	}
}
