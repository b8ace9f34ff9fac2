// Package tilt holds what developers with Tilt use to the code: tilt-provider.json, as Cluster API's Tiltfile reads it,
// and config/tilt/Tiltfile.
package tilt
