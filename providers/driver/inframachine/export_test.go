package inframachine

import "sigs.k8s.io/controller-runtime/pkg/client"

// What the simulation of lives, which is outside of the package since it uses packages that use it, has to know of launch records.

type LaunchRecord = launchRecord

func (r launchRecord) Encode() (string, error) { return r.encode() }

func ReadRecord(obj client.Object) (LaunchRecord, error) { return readRecord(obj) }

func PutRecord(obj client.Object, text string) { putRecord(obj, text) }

const Overlap = overlap
