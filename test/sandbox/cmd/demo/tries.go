package main

import (
	"fmt"
	"strings"

	"millwright.dev/test/sandbox"
)

// try is something to do in a demo that stays up: a command that can be pasted after the functions.
type try struct{ what, command string }

// endpoints are what the commands talk to.
type endpoints struct {
	kubectl, control, target string
	clouds                   []*sandbox.Cloud
	// metrics are the URLs of the managers' metrics.
	metrics []string
}

// functions define a command for each cluster; both are the same when there is only one.
func (e endpoints) functions() string {
	return fmt.Sprintf(
		"control() { %q --kubeconfig=%q \"$@\"; }\ntarget() { %q --kubeconfig=%q \"$@\"; }\n",
		e.kubectl,
		e.control,
		e.kubectl,
		e.target,
	)
}

// tries are what the demo suggests. TestSuggestionsWork runs each.
func (e endpoints) tries() []try {
	deployment := "machinedeployment " + e.clouds[0].Deployment
	control := e.clouds[0].URL() + "/_sim/faults"
	return []try{
		{"look at the Machines and their Nodes", "control get machines -o wide; target get nodes"},
		{"scale", "control scale " + deployment + " --replicas=4"},
		{
			"replace all, one at a time",
			"control patch " + deployment + ` --type=merge -p "{\"spec\":{\"rollout\":{\"after\":\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"}}}"`,
		},
		{
			"delete one and watch another come",
			`control delete machine --wait=false "$(control get machines -o jsonpath='{.items[0].metadata.name}')"`,
		},
		{
			"let " + e.clouds[0].Title + " run out of machines, and ask for more",
			`curl -fsS -X POST ` + control + ` -d '` + shortages[e.clouds[0].Name] + `'; control scale ` + deployment + " --replicas=6",
		},
		{
			"see why they wait",
			`control get machines; control describe ` + deployment + `; control get events --sort-by=.metadata.creationTimestamp`,
		},
		{"end the shortage", "curl -fsS -X DELETE " + control},
		{"metrics of the core and the providers; elsewhere they ask for a token", "curl -fsS " + strings.Join(e.metrics, " ")},
	}
}

// shortages are faults of the simulated clouds by which launches lack capacity.
var shortages = map[string]string{
	"aws":   `{"id":"short","action":"RunInstances","error":{"code":"InsufficientInstanceCapacity"}}`,
	"azure": `{"id":"short","action":"VirtualMachines_CreateOrUpdate","error":{"code":"ZonalAllocationFailed","status":409}}`,
	"gcp":   `{"id":"short","action":"instances.insert","launchFailure":{"code":"ZONE_RESOURCE_POOL_EXHAUSTED"}}`,
}

// text is what is printed.
func (e endpoints) text() string {
	var b strings.Builder
	b.WriteString("Paste this first:\n\n" + e.functions() + "\nThen try:\n")
	for _, t := range e.tries() {
		fmt.Fprintf(&b, "\n# %s\n%s\n", t.what, t.command)
	}
	return b.String()
}
