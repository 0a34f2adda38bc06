// Command cri asks a runtime as crictl does, and prints JSON: cri images, cri info, cri rmi IMAGE.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const endpoint = "unix:///run/containerd/containerd.sock"

func main() {
	answer, err := ask(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(protojson.MarshalOptions{EmitUnpopulated: true}.Format(answer))
}

func ask(arguments []string) (proto.Message, error) {
	connection, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	images, runtime := cri.NewImageServiceClient(connection), cri.NewRuntimeServiceClient(connection)
	switch {
	case len(arguments) == 1 && arguments[0] == "images":
		return images.ListImages(ctx, &cri.ListImagesRequest{})
	case len(arguments) == 1 && arguments[0] == "info":
		return runtime.Status(ctx, &cri.StatusRequest{})
	case len(arguments) == 2 && arguments[0] == "rmi":
		return images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: arguments[1]}})
	}
	return nil, fmt.Errorf("usage: cri images | info | rmi IMAGE")
}
