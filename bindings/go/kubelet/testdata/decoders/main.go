// Command decoders reads files as a kubelet does, with the decoders of the release that the module file
// names (go run -modfile 1.33.mod . FILE…). For each file it writes a line: what it is about, or that no
// decoder takes it.
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubelet/config/v1alpha1"
)

func main() {
	scheme := runtime.NewScheme()
	for _, version := range []string{"v1alpha1", "v1beta1"} { // the same fields
		scheme.AddKnownTypes(schema.GroupVersion{Group: v1alpha1.GroupName, Version: version},
			&v1alpha1.ImagePullIntent{}, &v1alpha1.ImagePulledRecord{})
	}
	for _, path := range os.Args[1:] {
		content, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		strict := read(serializer.NewCodecFactory(scheme, serializer.EnableStrict), content)
		if lenient := read(serializer.NewCodecFactory(scheme), content); lenient != strict {
			strict += ", but not strictly " + lenient
		}
		fmt.Println(strict)
	}
}

func read(codecs serializer.CodecFactory, content []byte) string {
	object, err := runtime.Decode(codecs.UniversalDeserializer(), content)
	switch object := object.(type) {
	case *v1alpha1.ImagePullIntent:
		return "intent " + object.Image
	case *v1alpha1.ImagePulledRecord:
		return fmt.Sprintf("record %s, %d names", object.ImageRef, len(object.CredentialMapping))
	}
	_ = err // its words differ from release to release
	return "unreadable"
}
