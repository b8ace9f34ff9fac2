package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/test/scale/measure"
)

func scaleUp(requests, reconciles int, wall float64) Phase {
	return Phase{
		Name: "scale-up", Machines: 10, WallSeconds: wall, CPUSeconds: wall / 10, PeakRSSBytes: 64 << 20,
		Requests: requests, Writes: requests - 10, Reconciles: map[string]int{machineController: reconciles, "machineset": 5, "clustercache": 9},
	}
}

func deletion(requests, pods, nodes int) Phase {
	return Phase{Name: "delete", Machines: 10, Requests: requests, PodsEvicted: pods, NodesDeleted: nodes, DeletesMachines: true}
}

func TestTables(t *testing.T) {
	g := NewWithT(t)
	runs := []Run{
		{Core: "upstream", Version: "v1", Setting: "first", N: 10, Leftovers: map[string]int{"nodes": 10},
			Phases: []Phase{scaleUp(240, 360, 8), deletion(100, 0, 0)}},
		{Core: "ours", Version: "abc", Setting: "first", N: 10, Leftovers: map[string]int{},
			Phases: []Phase{scaleUp(90, 90, 2), deletion(110, 30, 10)}},
	}
	var out strings.Builder
	Tables(&out, runs)
	text := out.String()
	g.Expect(text).To(ContainSubstring("### first setting, N = 10"))
	g.Expect(text).To(ContainSubstring("| scale-up | upstream | 8.0 | 80.0 | 64 | 24.0 | 23.0 | 0 | 36.0 |  |"))
	g.Expect(text).To(ContainSubstring("| | **ours/upstream** | **0.25** | **0.25** | **1.00** | **0.38** |"))
	g.Expect(text).To(ContainSubstring("| phase | core | machine | clustercache | machineset |"))
	g.Expect(text).To(ContainSubstring("| scale-up | ours | 9.00 | 0.90 | 0.50 |"))
	g.Expect(text).To(ContainSubstring("deleted no Node |"), "what upstream does not do is beside its figure")
	g.Expect(text).To(ContainSubstring("| evicted 30 Pods |"))
	g.Expect(text).To(ContainSubstring("upstream (v1): peak of all phases 64 MiB; left over: 10 nodes"))
	g.Expect(text).To(ContainSubstring("ours (abc): peak of all phases 64 MiB; nothing left over"))
}

func TestTablesOfOneCoreHaveNoRatio(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	Tables(&out, []Run{{Core: "ours", Setting: "second", N: 10, Phases: []Phase{scaleUp(90, 90, 2)}}})
	g.Expect(out.String()).NotTo(ContainSubstring("ours/upstream"))
	g.Expect(out.String()).NotTo(ContainSubstring("left over"), "the run had no deletion")
}

func TestGrowth(t *testing.T) {
	g := NewWithT(t)
	small, large := scaleUp(100, 90, 2), scaleUp(1100, 950, 30)
	large.Machines, large.PeakRSSBytes = 100, small.PeakRSSBytes+90*32<<10
	var out strings.Builder
	// The order of the runs is not that of N.
	Growth(&out, []Run{
		{Core: "ours", Setting: "first", N: 100, Phases: []Phase{large}},
		{Core: "ours", Setting: "first", N: 10, Phases: []Phase{small}},
	})
	text := out.String()
	g.Expect(text).To(ContainSubstring("| phase | figure | N = 10 | N = 100 | growth |"))
	g.Expect(text).To(ContainSubstring("| scale-up | req/M | 10.00 | 11.00 | 1.10 |"))
	g.Expect(text).To(ContainSubstring("| scale-up | CPU ms/M | 20.00 | 30.00 | 1.50 |"))
	g.Expect(text).To(ContainSubstring("Each Machine beyond N = 10 took 32 KiB of the peak."))
}

func TestResources(t *testing.T) {
	g := NewWithT(t)
	p := scaleUp(30, 40, 1)
	p.Results = map[string]int{"machine error": 1, "machine success": 39}
	p.ByResource = map[string]int{"create machines": 10, "patch machines/status": 20}
	var out strings.Builder
	Resources(&out, []Run{{Core: "ours", Setting: "first", N: 10, Phases: []Phase{p}}})
	g.Expect(out.String()).To(MatchRegexp(`(?s)20 +2\.00/M  patch machines/status.*10 +1\.00/M  create machines`))
	g.Expect(out.String()).To(ContainSubstring("reconciles: 39 machine success, 1 machine error"))
}

func TestCheck(t *testing.T) {
	budget := Budget{Settings: map[string]SettingBudget{"first": {
		Leftovers: ptr.To(0),
		Phases: map[string]PhaseBudget{
			"scale-up": {RequestsPerMachine: ptr.To(11.0), MachineReconcilesPerMachine: ptr.To(12.0)},
			"idle":     {Requests: ptr.To(0), Reconciles: ptr.To(0)},
			"delete":   {RequestsPerMachine: ptr.To(11.0), RequestsPerPod: 1},
		},
	}}}
	idle := Phase{Name: "idle", Machines: 10}
	good := func() Run {
		return Run{Setting: "first", N: 10, Leftovers: map[string]int{}, Phases: []Phase{scaleUp(110, 120, 1), idle, deletion(140, 30, 10)}}
	}
	for name, test := range map[string]struct {
		change func(*Run)
		want   []string
	}{
		"kept": {change: func(*Run) {}},
		"another setting has no budget": {change: func(r *Run) {
			r.Setting, r.Phases = "second", nil
		}},
		"a request too many": {
			change: func(r *Run) { r.Phases[0].Requests++ },
			want:   []string{"first setting, N = 10, scale-up: requests per Machine: 11.10, budget 11.00"},
		},
		"reconciles too many": {
			change: func(r *Run) { r.Phases[0].Reconciles[machineController] = 150 },
			want:   []string{"first setting, N = 10, scale-up: Machine reconciles per Machine: 15.00, budget 12.00"},
		},
		"work while idle": {
			change: func(r *Run) {
				r.Phases[1].Requests = 2
				r.Phases[1].Reconciles = map[string]int{"machineset": 1, "clustercache": 3}
			},
			want: []string{
				"first setting, N = 10, idle: requests: 2, budget 0",
				"first setting, N = 10, idle: reconciles: 1, budget 0",
			},
		},
		"a watch that ended by age": {change: func(r *Run) { r.Phases[1].Requests, r.Phases[1].Watches = 1, 1 }},
		"fewer Pods than requests for them": {
			change: func(r *Run) { r.Phases[2].PodsEvicted = 20 },
			want:   []string{"first setting, N = 10, delete: requests per Machine: 12.00, budget 11.00"},
		},
		"leftovers": {
			change: func(r *Run) { r.Leftovers = map[string]int{"nodes": 2, "secrets": 3} },
			want:   []string{"first setting, N = 10: 5 objects left over (3 secrets, 2 nodes), budget 0"},
		},
		"nothing measured": {
			change: func(r *Run) { r.Phases, r.Leftovers = r.Phases[:2], nil },
			want: []string{
				"first setting, N = 10, delete: not measured",
				"first setting, N = 10: leftovers were not counted",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := good()
			test.change(&r)
			g.Expect(budget.Check(&r)).To(Equal(test.want))
		})
	}
}

// The budget that bench-check uses has a limit for every phase of both settings.
func TestReadBudget(t *testing.T) {
	g := NewWithT(t)
	b, err := ReadBudget("../budget.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, setting := range []string{"first", "second"} {
		s := b.Settings[setting]
		g.Expect(s.Leftovers).To(HaveValue(BeZero()))
		for _, phase := range []string{"scale-up", "idle", "heartbeats", "restart", "rollout", "scale-down", "delete"} {
			g.Expect(s.Phases).To(HaveKeyWithValue(phase, Not(Equal(PhaseBudget{}))))
		}
	}
}

func TestReadBudgetRefusesUnknownFields(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "budget.yaml")
	g.Expect(os.WriteFile(path, []byte("settings: {first: {phases: {idle: {request: 0}}}}"), 0o600)).To(Succeed())
	_, err := ReadBudget(path)
	g.Expect(err).To(MatchError(ContainSubstring("request")))
}

func TestSetCost(t *testing.T) {
	g := NewWithT(t)
	p := Phase{Machines: 10, WallSeconds: 5}
	p.SetCost(measure.Cost{
		CPU: 2 * time.Second,
		Counters: measure.Counters{
			Requests: map[string]int{"GET": 6, "PATCH": 30}, Reconciles: map[string]int{machineController: 50},
		},
		ByResource: map[string]int{"health probe": 1, "watch nodes": 2},
	})
	g.Expect(p.Requests).To(Equal(35))
	g.Expect(p.Watches).To(Equal(2))
	g.Expect(p.PerMachine).To(Equal(PerMachine{
		WallMilliseconds: 500, CPUMilliseconds: 200, Requests: 3.5, Writes: 3,
		Verbs: map[string]float64{"GET": 0.6, "PATCH": 3}, Reconciles: map[string]float64{machineController: 5},
	}))
}

func TestWrite(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "out", "bench.json")
	file := File{Command: "bench -n 10", Runs: []Run{{Core: "ours", N: 10, Phases: []Phase{scaleUp(90, 90, 2)}}}}
	g.Expect(file.Write(path)).To(Succeed())
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	var read File
	g.Expect(json.Unmarshal(content, &read)).To(Succeed())
	g.Expect(read).To(Equal(file))
}
