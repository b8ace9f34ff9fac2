package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"millwright.dev/test/sandbox/scenario"
)

const (
	// redrawInterval is how often the ages in the table are updated.
	redrawInterval = time.Second
	// defaultWidth is taken when a terminal does not say how wide it is.
	defaultWidth = 120
)

// screen shows lines of progress and, below them, the table of Machines: drawn in place on a
// terminal, else a line for each Machine that changed.
type screen struct {
	out      *os.File
	begin    time.Time
	terminal bool
	done     chan struct{}
	wake     chan struct{}
	stopped  chan struct{}

	mu       sync.Mutex
	machines func() []scenario.Machine
	drawn    int
	partial  string
	printed  map[string]string
	closed   bool
}

func newScreen(out *os.File, begin time.Time) *screen {
	s := &screen{
		out:      out,
		begin:    begin,
		terminal: term.IsTerminal(int(out.Fd())),
		done:     make(chan struct{}),
		wake:     make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		printed:  map[string]string{},
	}
	go s.loop()
	return s
}

// source gives the screen the Machines to show.
func (s *screen) source(machines func() []scenario.Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machines = machines
}

// refresh requests a redraw of the table; it never blocks.
func (s *screen) refresh() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *screen) loop() {
	defer close(s.stopped)
	ticker := time.NewTicker(redrawInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-s.wake:
		case <-ticker.C:
			if !s.terminal {
				continue
			}
		}
		s.mu.Lock()
		s.show()
		s.mu.Unlock()
	}
}

// title begins a step.
func (s *screen) title(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.terminal {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	s.lines("", text)
}

// logf prints a line of progress.
func (s *screen) logf(format string, args ...any) {
	s.lines(fmt.Sprintf("  %5.1fs  %s", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...)))
}

// Write takes the progress of the sandbox, in lines.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	text := s.partial + string(p)
	end := strings.LastIndexByte(text, '\n')
	s.partial = text[end+1:]
	s.mu.Unlock()
	if end > 0 {
		for line := range strings.SplitSeq(text[:end], "\n") {
			s.logf("%s", line)
		}
	}
	return len(p), nil
}

func (s *screen) lines(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.erase()
	for _, line := range lines {
		fmt.Fprintln(s.out, line)
	}
	s.show()
}

// erase removes the table from the terminal, so that lines can take its place.
func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *screen) show() {
	if s.machines == nil || s.closed {
		return
	}
	machines := s.machines()
	if !s.terminal {
		s.printChanges(machines)
		return
	}
	s.erase()
	rows := table(machines, time.Now())
	if len(machines) == 0 {
		return
	}
	for _, row := range rows {
		fmt.Fprintln(s.out, cut(row, s.width()))
	}
	s.drawn = len(rows)
}

// printChanges prints a line for each Machine that is not as it was printed last.
func (s *screen) printChanges(machines []scenario.Machine) {
	there := map[string]bool{}
	for _, m := range machines {
		there[m.Name] = true
		line := changeLine(m)
		if s.printed[m.Name] != line {
			s.printed[m.Name] = line
			fmt.Fprintf(s.out, "  %5.1fs  %s\n", time.Since(s.begin).Seconds(), line)
		}
	}
	for name := range s.printed {
		if !there[name] {
			delete(s.printed, name)
			fmt.Fprintf(s.out, "  %5.1fs  %s  gone\n", time.Since(s.begin).Seconds(), name)
		}
	}
}

func (s *screen) width() int {
	if width, _, err := term.GetSize(int(s.out.Fd())); err == nil && width > 0 {
		return width
	}
	return defaultWidth
}

// close leaves what is drawn as it is and shows nothing more.
func (s *screen) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	close(s.done)
	<-s.stopped
}
