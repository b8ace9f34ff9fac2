package controlplane

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// How often progress is printed: on a terminal the line is written over, elsewhere each is a new one.
const (
	terminalInterval = 200 * time.Millisecond
	lineInterval     = 30 * time.Second
)

// progress reads what `go build -v` prints, a line for each package, and prints how many there were. What is not the path of
// a package is kept, for an error.
type progress struct {
	out      io.Writer
	what     string
	terminal bool
	began    time.Time
	stop     chan struct{}
	stopped  chan struct{}

	mutex    sync.Mutex
	packages int
	partial  string
	others   []string
}

// newProgress starts printing to out, until end is called.
func newProgress(out io.Writer, what string) *progress {
	p := &progress{out: out, what: what, began: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
	file, ok := out.(*os.File)
	p.terminal = ok && term.IsTerminal(int(file.Fd()))
	go p.print()
	return p
}

// Write takes the output of the go command.
func (p *progress) Write(b []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	lines := strings.Split(p.partial+string(b), "\n")
	p.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		switch {
		case strings.HasPrefix(line, "go: downloading "):
		case line != "" && !strings.ContainsAny(line, " :#\t"):
			p.packages++
		default:
			p.others = append(p.others, line)
		}
	}
	return len(b), nil
}

func (p *progress) print() {
	defer close(p.stopped)
	interval, begin, end := lineInterval, "", "\n"
	if p.terminal {
		interval, begin, end = terminalInterval, "\r\033[K", ""
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprint(p.out, begin, p.line(), end)
		case <-p.stop:
			if p.terminal {
				fmt.Fprint(p.out, begin)
			}
			return
		}
	}
}

func (p *progress) line() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return fmt.Sprintf("%s: %d packages compiled in %s", p.what, p.packages, time.Since(p.began).Round(time.Second))
}

// end stops printing, and clears the line on a terminal.
func (p *progress) end() {
	close(p.stop)
	<-p.stopped
}

// rest returns what the go command printed beside packages.
func (p *progress) rest() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return strings.TrimSpace(strings.Join(append(p.others, p.partial), "\n"))
}
