// Package tilt compares what developers use with Tilt with the code: tilt-provider.json, as Cluster API's Tiltfile reads it,
// and config/tilt/Tiltfile.
package tilt
