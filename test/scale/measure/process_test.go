package measure

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestParseCPU(t *testing.T) {
	for name, test := range map[string]struct {
		stat string
		want time.Duration
		err  string
	}{
		"a program": {
			stat: "42 (core) S 1 42 42 0 -1 4194560 1 2 3 4 250 50 7 8 20 0 9 0 100 0 0",
			want: 3 * time.Second,
		},
		"a name with spaces and parentheses": {
			stat: "42 (a) b (c) R 1 42 42 0 -1 4194560 1 2 3 4 1 2 7 8 20 0 9 0 100 0 0",
			want: 30 * time.Millisecond,
		},
		"no name":        {stat: "42 core S 1", err: "no program name"},
		"too few fields": {stat: "42 (core) S 1 42", err: "only 3 fields"},
		"no number":      {stat: "42 (core) S 1 42 42 0 -1 4194560 1 2 3 4 x 2 7 8 20", err: "parsing CPU time"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := parseCPU([]byte(test.stat))
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestParseMemory(t *testing.T) {
	g := NewWithT(t)
	status := []byte("Name:\tcore\nVmHWM:\t  131072 kB\nVmRSS:\t  1024 kB\n")
	g.Expect(parseMemory(status, "VmHWM:")).To(Equal(int64(128 << 20)))
	g.Expect(parseMemory(status, "VmRSS:")).To(Equal(int64(1 << 20)))
	_, err := parseMemory(status, "VmSwap:")
	g.Expect(err).To(MatchError("the kernel reports no VmSwap"))
}

// The kernel's account of this test itself.
func TestReadProcess(t *testing.T) {
	g := NewWithT(t)
	before, err := ReadProcess(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(before.PeakRSS).To(BeNumerically(">=", before.RSS))
	g.Eventually(func() (time.Duration, error) {
		spin()
		now, err := ReadProcess(os.Getpid())
		return now.CPU, err
	}).Should(BeNumerically(">", before.CPU))
	_, err = ReadProcess(-1)
	g.Expect(err).To(HaveOccurred())
}

func TestResetPeak(t *testing.T) {
	g := NewWithT(t)
	if err := ResetPeak(os.Getpid()); err != nil {
		t.Skip("this kernel does not let a process reset its peak: ", err)
	}
	after, err := ReadProcess(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.PeakRSS).To(BeNumerically("<", after.RSS+64<<20))
}

// spin uses some CPU time.
func spin() {
	until := time.Now().Add(20 * time.Millisecond)
	for time.Now().Before(until) {
		continue
	}
}
