package certificates

import (
	"crypto/x509"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	names = []string{"core.ns.svc", "localhost"}
	life  = Lifetimes{Authority: 90 * time.Hour, Serving: 30 * time.Hour, Settle: time.Minute}
)

// verify verifies as an API server does.
func verify(c content, name string, at time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.trusted)
	serving, err := parse(c.serving)
	if err != nil {
		return err
	}
	_, err = serving.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
	return err
}

func TestFirstContent(t *testing.T) {
	g := NewWithT(t)
	i := newIssuer(names)
	next, _ := i.plan(content{}, life, false, noon)
	g.Expect(next).To(Equal(begin))
	c, err := i.take(begin, content{}, life, noon)
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range names {
		g.Expect(verify(c, name, noon)).To(Succeed())
	}
	g.Expect(verify(c, "other", noon)).NotTo(Succeed())
	next, ask := i.plan(c, life, true, noon)
	g.Expect(next).To(Equal(rest))
	g.Expect(ask).To(BeTemporally("==", noon.Add(20*time.Hour)), "a third of the serving certificate's life is left then")
	g.Expect(readContent(c.data())).To(Equal(c))
}

func TestPlan(t *testing.T) {
	i := newIssuer(names)
	first, err := i.take(begin, content{}, life, noon)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	announced, err := i.take(addNext, first, life, noon)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	foreign, err := newIssuer(names).take(begin, content{}, life, noon)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	tests := map[string]struct {
		content content
		settled bool
		at      time.Duration
		want    step
	}{
		"nothing there":                       {content: content{}, want: begin},
		"garbage":                             {content: content{authority: pair{[]byte("x"), []byte("y")}, serving: first.serving}, want: begin},
		"all well":                            {content: first, settled: true, want: rest},
		"serving certificate is gone":         {content: content{authority: first.authority, trusted: first.trusted}, want: renew},
		"serving certificate of others":       {content: content{authority: first.authority, trusted: first.trusted, serving: foreign.serving}, want: renew},
		"serving certificate is due":          {content: first, settled: true, at: 20 * time.Hour, want: renew},
		"serving certificate has expired":     {content: first, settled: true, at: 31 * time.Hour, want: renew},
		"authority is due":                    {content: renewed(t, i, first, 60*time.Hour), settled: true, at: 60 * time.Hour, want: addNext},
		"next is not trusted everywhere yet":  {content: announced, want: rest},
		"next is trusted":                     {content: announced, settled: true, want: promote},
		"authority has expired, next has not": {content: renewed(t, i, announcedAt(t, i, first, 80*time.Hour), 80*time.Hour), at: 91 * time.Hour, want: promote},
		"all have expired":                    {content: announced, settled: true, at: 91 * time.Hour, want: begin},
		"trusted authorities were edited":     {content: content{authority: first.authority, serving: first.serving}, settled: true, want: trim},
		"key does not fit":                    {content: content{authority: pair{first.authority.certificate, foreign.authority.key}, serving: first.serving}, want: begin},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := i.plan(test.content, life, test.settled, noon.Add(test.at))
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

func renewed(t *testing.T, i issuer, c content, at time.Duration) content {
	t.Helper()
	c, err := i.take(renew, c, life, noon.Add(at))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func announcedAt(t *testing.T, i issuer, c content, at time.Duration) content {
	t.Helper()
	c, err := i.take(addNext, c, life, noon.Add(at))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// TestYears lets time pass from deadline to deadline. At every moment what is served must verify by what was trusted
// for as long as it takes to settle, and nothing may be asked for without end.
func TestYears(t *testing.T) {
	g := NewWithT(t)
	i := newIssuer(names)
	c, err := i.take(begin, content{}, life, noon)
	g.Expect(err).NotTo(HaveOccurred())
	now, published, since := noon, c, noon
	taken := map[step]int{}
	for range 30 {
		if string(published.trusted) != string(c.trusted) {
			published, since = c, now
		}
		settled := now.Sub(since) >= life.Settle
		s, ask := i.plan(c, life, settled, now)
		taken[s]++
		if s != rest {
			c, err = i.take(s, c, life, now)
			g.Expect(err).NotTo(HaveOccurred())
			// API servers know what was published last.
			seen := c
			seen.trusted = published.trusted
			g.Expect(verify(seen, names[0], now)).To(Succeed(), "after %s at %s", s, now)
			continue
		}
		if !c.next.empty() && !settled {
			ask = since.Add(life.Settle)
		}
		g.Expect(ask).To(BeTemporally(">", now))
		g.Expect(verify(c, names[0], ask)).To(Succeed(), "until it is looked at again")
		now = ask
	}
	g.Expect(now.Sub(noon)).To(BeNumerically(">", life.Authority))
	g.Expect(taken[begin]).To(BeZero())
	g.Expect(taken[addNext]).To(BeNumerically(">=", 2))
	g.Expect(taken[addNext]-taken[promote]).To(BeElementOf(0, 1), "the last may not be due yet")
	g.Expect(len(c.trusted)).To(BeNumerically("<", 5000), "former authorities do not pile up")
}
