// Command program does one thing in two goroutines.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func main() {
	shared := &clusterv1.Machine{}
	shared.Labels = map[string]string{"a": "b"}
	var mutex sync.Mutex
	var published atomic.Pointer[clusterv1.Machine]
	scenarios := map[string][2]func(){
		"write beside write":     {func() { shared.Name = "a" }, func() { shared.Name = "b" }},
		"write beside deep copy": {func() { shared.Spec.ClusterName = "a" }, func() { _ = shared.DeepCopy() }},
		"map":                    {func() { shared.Labels["c"] = "d" }, func() { _, _ = json.Marshal(shared.Labels) }},
		"sync.Map of a package":  {decode, decode},
		"atomic": {
			func() { published.Store(&clusterv1.Machine{}) },
			func() {
				if m := published.Load(); m != nil {
					m.Name = "a"
				}
			},
		},
		"mutex": {
			func() { mutex.Lock(); shared.Name = "a"; mutex.Unlock() },
			func() { mutex.Lock(); shared.Name = "b"; mutex.Unlock() },
		},
	}
	scenario, ok := scenarios[strings.Join(os.Args[1:], " ")]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such scenario")
		os.Exit(1)
	}
	begin := make(chan struct{})
	var group sync.WaitGroup
	for _, do := range scenario {
		group.Go(func() {
			<-begin
			do()
		})
	}
	close(begin)
	group.Wait()
}

// decode has encoding/json fill its cache of fields, a sync.Map with values that hold maps, for types that only this program has. The
// goroutines meet at many types, as some are found and others made.
func decode() {
	for i := range 300 {
		field := reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[string]()}
		value := reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface()
		if err := json.Unmarshal(fmt.Appendf(nil, `{"F%d":"x"}`, i), value); err != nil {
			panic(err)
		}
	}
}
