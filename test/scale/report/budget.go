package report

import (
	"fmt"
	"math"
	"os"

	"github.com/pkg/errors"
	"sigs.k8s.io/yaml"
)

// Budget limits what our core may cost. It holds counts only: noise of the machine does not move them.
type Budget struct {
	// Settings are by name.
	Settings map[string]SettingBudget `json:"settings"`
}

// SettingBudget is the budget of a run in one setting.
type SettingBudget struct {
	// Phases are by name. A phase without a budget may cost anything.
	Phases map[string]PhaseBudget `json:"phases"`
	// Leftovers is how many objects may remain after the deletion; not limited when nil.
	Leftovers *int `json:"leftovers,omitempty"`
}

// PhaseBudget limits a phase. What is nil is not limited.
type PhaseBudget struct {
	// Requests, Writes, Conflicts and Reconciles limit the whole phase. Requests leave out watches,
	// which the API server ends by age.
	Requests   *int `json:"requests,omitempty"`
	Writes     *int `json:"writes,omitempty"`
	Conflicts  *int `json:"conflicts,omitempty"`
	Reconciles *int `json:"reconciles,omitempty"`
	// RequestsPerMachine and MachineReconcilesPerMachine limit the average.
	RequestsPerMachine          *float64 `json:"requestsPerMachine,omitempty"`
	MachineReconcilesPerMachine *float64 `json:"machineReconcilesPerMachine,omitempty"`
	// RequestsPerPod are allowed beyond RequestsPerMachine for each Pod that was evicted.
	RequestsPerPod float64 `json:"requestsPerPod,omitempty"`
}

// ReadBudget reads a budget file.
func ReadBudget(path string) (Budget, error) {
	var b Budget
	content, err := os.ReadFile(path)
	if err != nil {
		return b, errors.Wrap(err, "reading the budget")
	}
	return b, errors.Wrapf(yaml.UnmarshalStrict(content, &b), "parsing the budget %s", path)
}

// Check lists what a run exceeds; nothing when it keeps the budget. A phase of the budget that was not
// run is listed too: what was not measured was not kept.
func (b *Budget) Check(r *Run) []string {
	budget, found := b.Settings[r.Setting]
	if !found {
		return nil
	}
	c := checker{run: r}
	for _, name := range sortedKeys(budget.Phases) {
		if p := r.Phase(name); p != nil {
			c.phase(p, budget.Phases[name])
		} else {
			c.exceeded = append(c.exceeded, fmt.Sprintf("%s setting, N = %d, %s: not measured", r.Setting, r.N, name))
		}
	}
	if budget.Leftovers != nil {
		c.leftovers(*budget.Leftovers)
	}
	return c.exceeded
}

// checker collects what is exceeded.
type checker struct {
	run      *Run
	exceeded []string
}

func (c *checker) phase(p *Phase, b PhaseBudget) {
	whole := []struct {
		what  string
		value int
		limit *int
	}{
		{"requests", p.Requests - p.Watches, b.Requests},
		{"writes", p.Writes, b.Writes},
		{"conflicts", p.Conflicts, b.Conflicts},
		{"reconciles", p.AllReconciles(), b.Reconciles},
	}
	for _, w := range whole {
		if w.limit != nil && w.value > *w.limit {
			c.add(p, "%s: %d, budget %d", w.what, w.value, *w.limit)
		}
	}
	if p.Machines == 0 {
		c.add(p, "no Machines")
		return
	}
	requests := p.per(float64(p.Requests) - b.RequestsPerPod*float64(p.PodsEvicted))
	c.average(p, "requests per Machine", requests, b.RequestsPerMachine)
	c.average(p, "Machine reconciles per Machine", p.per(float64(p.Reconciles[machineController])), b.MachineReconcilesPerMachine)
}

// average compares to a hundredth, which is what is shown.
func (c *checker) average(p *Phase, what string, value float64, limit *float64) {
	if limit != nil && math.Round(value*100) > math.Round(*limit*100) {
		c.add(p, "%s: %.2f, budget %.2f", what, value, *limit)
	}
}

func (c *checker) leftovers(limit int) {
	if c.run.Leftovers == nil {
		c.exceeded = append(c.exceeded, fmt.Sprintf("%s setting, N = %d: leftovers were not counted", c.run.Setting, c.run.N))
		return
	}
	sum := 0
	for _, n := range c.run.Leftovers {
		sum += n
	}
	if sum > limit {
		c.exceeded = append(c.exceeded, fmt.Sprintf("%s setting, N = %d: %d objects left over (%s), budget %d",
			c.run.Setting, c.run.N, sum, counts(c.run.Leftovers), limit))
	}
}

func (c *checker) add(p *Phase, format string, args ...any) {
	c.exceeded = append(c.exceeded, fmt.Sprintf("%s setting, N = %d, %s: ", c.run.Setting, c.run.N, p.Name)+fmt.Sprintf(format, args...))
}
