// What a user of the module writes, whichever way it came.
package main

import (
	"fmt"
	"os"

	"waybill.dev/go/store"
)

func main() {
	directory := os.Args[1]
	opened, err := store.Open(store.Options{Directory: directory, LossMarker: directory + "-marker"})
	if err != nil {
		panic(err)
	}
	defer opened.Close()
	image := store.ImageCopy{Image: "registry.example.com/team-a/app:v1", ImageRef: "sha256:0f3a"}
	fmt.Println("pull:", !opened.Decide(image, store.PodCredentials{}).Use)
}
