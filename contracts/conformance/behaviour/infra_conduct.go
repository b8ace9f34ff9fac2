package behaviour

import (
	"fmt"
	"slices"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/rules"
)

// infraRepeat is a machine whose object and Machine change repeatedly while it is launched, and afterwards.
func infraRepeat() conformance.Case[*Env] {
	return scenario("Repeat", []rules.ID{"IM-023"}, func(w *world) {
		w.infra(all, nil, false)
		most, touches := []probe.Machine(nil), 0
		look := func() bool {
			if machines := w.machines(); len(machines) > len(most) {
				most = machines
			}
			if touches < 20 {
				w.touch()
				touches++
			}
			return w.provisioned(w.object()) || len(most) > 1
		}
		if !w.until(w.Timeouts.Provision.Duration, look) {
			w.stop("no machine was provisioned within %s, so that this cannot be verified", w.Timeouts.Provision.Duration)
		}
		w.quiet(func() string {
			look()
			return ""
		})
		w.check(len(most) == 1, "IM-023", "there is one machine for an object",
			"across changes of annotations, the infrastructure had at most "+named(most))
	})
}

// infraDomain requests a failure domain.
func infraDomain() conformance.Case[*Env] {
	return scenario("FailureDomain", []rules.ID{"IM-005", "IM-022"}, func(w *world) {
		spec, err := w.Sample.machineSpec()
		w.must(err, "to read the Machine of the sample")
		if spec.FailureDomain == "" {
			w.stop("the sample has no Machine with a spec.failureDomain to request: choose one that machines are not in by default")
		}
		w.infra(all, nil, false)
		w.mustBeProvisioned()
		reported, err := w.accessor().FailureDomain(objectOrEmpty(w.object()))
		if err != nil {
			reported = err.Error()
		}
		actual := ""
		if w.Probe != nil {
			if machines := w.machines(); len(machines) > 0 {
				actual = machines[0].FailureDomain
			}
		}
		where := actual
		if where == "" {
			where = reported
		}
		switch where {
		case "":
			w.skip("IM-022", "neither a probe nor the object reports the failure domain of the machine")
		default:
			w.check(where == spec.FailureDomain, "IM-022", "the machine is in the failure domain "+spec.FailureDomain,
				fmt.Sprintf("the Machine requests %q, the infrastructure reports %q, the object %q", spec.FailureDomain, actual, reported))
		}
		if reported == "" {
			w.skip("IM-005", "the object reports no failure domain")
			return
		}
		w.check(reported == where, "IM-005", "the failure domain where the machine is",
			fmt.Sprintf("the object reports %q, the infrastructure %q", reported, actual))
	})
}

// infraRestart restarts the provider while a machine is launched, and again when it runs.
func infraRestart() conformance.Case[*Env] {
	return scenario(restartCase, []rules.ID{"IM-024"}, func(w *world) {
		if w.Restart == nil {
			w.stop("no way to restart the provider was given")
		}
		if w.Probe == nil {
			w.stop(noProbe)
		}
		w.infra(all, nil, false)
		w.until(w.Timeouts.Provision.Duration, func() bool { return len(objectOrEmpty(w.object()).GetFinalizers()) > 0 || w.trace() != "" })
		works := func(another *world) {
			another.infra(all, nil, false)
			another.mustBeProvisioned()
		}
		w.restart(works)
		w.mustBeProvisioned()
		before := w.machines()
		w.restart(works)
		deviation := w.quiet(func() string {
			now := w.machines()
			if len(now) != 1 || len(before) != 1 || now[0].ID != before[0].ID {
				return fmt.Sprintf("the infrastructure had %s before and %s after a restart", named(before), named(now))
			}
			return ""
		})
		w.unless(deviation, "IM-024", "there is one machine, the same before and after a restart",
			fmt.Sprintf("%s before and after two restarts, one while it was launched", named(before)))
	})
}

// ids returns the IDs of machines.
func ids(machines []probe.Machine) []string {
	var all []string
	for _, m := range machines {
		all = append(all, m.ID)
	}
	slices.Sort(all)
	return all
}
