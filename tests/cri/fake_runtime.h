// A container runtime that gives the answers that a test put in, right or wrong.

#ifndef WAYBILL_TESTS_CRI_FAKE_RUNTIME_H_
#define WAYBILL_TESTS_CRI_FAKE_RUNTIME_H_

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cri.pb.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

// Answers every method over gRPC. One that no answer was put in for is unimplemented.
class FakeRuntime {
 public:
  FakeRuntime();
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;
  FakeRuntime& operator=(const FakeRuntime&) = delete;

  // `method`: "ListImages", or with its service where several have one of that name:
  // "containerd.services.leases.v1.Leases/List". The bytes need not be a message.
  void Answer(const std::string& method, std::string bytes);
  void Answer(const std::string& method, const google::protobuf::Message& message) {
    Answer(method, message.SerializeAsString());
  }
  // A stream of these.
  void AnswerMany(const std::string& method, std::vector<std::string> messages);
  void Fail(const std::string& method, int status_code, const std::string& text);
  // Takes the call and never answers.
  void Hang(const std::string& method);
  // Runs before each answer to that method.
  void Before(const std::string& method, std::function<void()> run);
  // The bytes of the last request for that method.
  std::string request(const std::string& method) const;
  // Of the last call of any method.
  std::string containerd_namespace() const;

  // Sends an event to all that subscribed; waits until somebody has.
  void SendEvent();
  // Ends their streams.
  void EndEvents();

  // Listens no more; Start: again, at the same path.
  void Stop();
  void Start();

  std::string path() const { return (dir_.path() / "runtime.sock").string(); }
  std::string endpoint() const { return "unix://" + path(); }

 private:
  class Service;

  TempDir dir_;
  std::unique_ptr<Service> service_;
};

// What crictl printed, as CRI's messages.
runtime::v1::ListImagesResponse ImagesFrom(const std::string& crictl_json);
runtime::v1::StatusResponse StatusFrom(const std::string& crictl_json);
runtime::v1::VersionResponse Version(const std::string& name, const std::string& version);

// A list of `count` images with a name and a digest each.
runtime::v1::ListImagesResponse ManyImages(int count);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRI_FAKE_RUNTIME_H_
