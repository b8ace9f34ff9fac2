package main

import (
	"fmt"
	"strings"
)

// try is something to do in a demo that stays up: a command that can be pasted after the functions.
type try struct{ what, command string }

// endpoints are what the commands talk to.
type endpoints struct {
	kubectl, control, target string
	// ec2 is the URL of the simulator, metrics those of the managers by name.
	ec2     string
	metrics map[string]string
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
	const deployment = "machinedeployment workers"
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
			"let EC2 run out of instances, and ask for more",
			`curl -fsS -X POST ` + e.ec2 + `/_sim/faults -d '{"id":"short","action":"RunInstances",` +
				`"error":{"code":"InsufficientInstanceCapacity"}}'; ` +
				`control scale ` + deployment + " --replicas=6",
		},
		{
			"see why they wait",
			`control get machines; control describe ` + deployment + `; control get events --sort-by=.metadata.creationTimestamp`,
		},
		{"end the shortage", "curl -fsS -X DELETE " + e.ec2 + "/_sim/faults"},
		{"metrics of the core, the AWS and the CloudConfig provider; elsewhere they ask for a token", strings.Join([]string{
			"curl -fsS " + e.metrics["core"], "curl -fsS " + e.metrics["aws"], "curl -fsS " + e.metrics["cloudconfig"],
		}, "; ")},
	}
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
