package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"

	"waybill.dev/go"
)

// runtime stands in for the container runtime. It knows which images are on the node, also after the
// agent was killed, as a separate process would: it has an empty file for each image string.
type runtime struct {
	directory string
	mutex     sync.Mutex
	present   map[int]bool // by image
}

func openRuntime(directory string) (*runtime, error) {
	_, err := os.Stat(directory)
	first := os.IsNotExist(err)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	r := &runtime{directory: directory, present: map[int]bool{}}
	for image := range images {
		if first && preloaded(image) {
			if err := r.arrive(image); err != nil {
				return nil, err
			}
		}
		_, err := os.Stat(r.path(image))
		r.present[image] = err == nil
	}
	return r, nil
}

func (r *runtime) path(image int) string {
	return filepath.Join(r.directory, hex.EncodeToString([]byte(imageName(image))))
}

// ref is the runtime's ref for the image string; empty: the image is not on the node.
func (r *runtime) ref(image int) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.present[image] {
		return ""
	}
	return imageRef(image)
}

// arrive ends a pull that the registry allowed.
func (r *runtime) arrive(image int) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.present[image] = true
	return os.WriteFile(r.path(image), nil, 0o600)
}

// remove removes every image string of a ref from the node.
func (r *runtime) remove(ref string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for image := range images {
		if r.present[image] && imageRef(image) == ref {
			if err := os.Remove(r.path(image)); err != nil {
				return err
			}
			r.present[image] = false
		}
	}
	return nil
}

// list is what CRI's ListImages returns.
func (r *runtime) list() []waybill.ImageOnNode {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	tags := map[string][]string{}
	for image := range images {
		if r.present[image] {
			tags[imageRef(image)] = append(tags[imageRef(image)], imageName(image))
		}
	}
	list := []waybill.ImageOnNode{}
	for ref, names := range tags {
		list = append(list, waybill.ImageOnNode{ID: ref, RepoTags: names})
	}
	return list
}
