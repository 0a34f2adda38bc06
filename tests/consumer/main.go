// What a user of the module writes, whichever way it came.
package main

import (
	"context"
	"fmt"
	"os"

	"waybill.dev/go"
)

func main() {
	directory := os.Args[1]
	store, err := waybill.Open(context.Background(), waybill.Options{
		Directory: directory, Witness: waybill.WitnessAt(directory + "-witness"),
	})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	image := waybill.ImageCopy{Image: "registry.example.com/team-a/app:v1", ImageRef: "sha256:0f3a"}
	fmt.Println("pull:", store.MustAttemptPull(image, waybill.PodCredentials{}).Pull())
}
