// Package validate validates core objects: each error has its field and the remedy. The functions
// are pure, and expect an object whose defaults are applied (package defaults): the webhooks call them on what a
// client sends, and a controller may call them on its copy of what it has read, where admission is not installed.
//
// The rules are those of Cluster API's webhooks
// (https://github.com/kubernetes-sigs/cluster-api/tree/v1.14.2/core/webhooks/admission) but for the differences that
// ../README.md lists; test/admission compares the answers.
//
// Old is the object before an update, nil when it is being created. An error that it had already, with the same message,
// is no reason to refuse an update (see ratchet): else an object stored before admission was installed, or under
// another feature gate, could not even lose its finalizers.
package validate
