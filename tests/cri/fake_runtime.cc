#include "tests/cri/fake_runtime.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

namespace waybill::testing {

namespace {

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) throw std::runtime_error("a request without bytes");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

struct Answered {
  grpc::Status status = grpc::Status::OK;
  std::vector<std::string> messages = {};
  bool hangs = false;
};

}  // namespace

class FakeRuntime::Service {
 public:
  explicit Service(std::string path) : path_(std::move(path)) { Start(); }
  ~Service() { Stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix://" + path_, grpc::InsecureServerCredentials());
    builder.SetMaxSendMessageSize(-1);
    // A server takes each once.
    methods_ = std::make_unique<Methods>(*this);
    builder.RegisterCallbackGenericService(methods_.get());
    server_ = builder.BuildAndStart();
    if (!server_) throw std::runtime_error("the fake runtime does not start");
  }
  void Stop() {
    if (!server_) return;
    // Calls that hang are cancelled at once.
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  void Put(const std::string& method, Answered answer) {
    const std::lock_guard lock(mutex_);
    answers_[method] = std::move(answer);
  }
  void Before(const std::string& method, std::function<void()> run) {
    const std::lock_guard lock(mutex_);
    before_[method] = std::move(run);
  }
  std::string request(const std::string& method) const {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(method);
    return found == requests_.end() ? "" : found->second;
  }

  std::string containerd_namespace() const {
    const std::lock_guard lock(mutex_);
    return namespace_;
  }

  void SendEvent() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return !subscribed_.empty() && std::none_of(subscribed_.begin(), subscribed_.end(),
                                                  [](const Reactor* one) { return one->writes(); });
    });
    for (Reactor* one : subscribed_) one->Send("\x1a\x0e/images/create");
  }
  void EndEvents() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !subscribed_.empty(); });
    for (Reactor* one : std::exchange(subscribed_, {})) one->End(grpc::Status::OK);
  }

 private:
  // One call.
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    // "/runtime.v1.ImageService/ListImages"
    Reactor(Service& service, const std::string& method)
        : service_(service),
          full_method_(method.substr(1)),
          method_(method.substr(method.rfind('/') + 1)) {
      StartRead(&received_);
    }

    void OnReadDone(bool ok) override {
      if (!ok) return End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no request"));
      if (const auto run = service_.BeforeOf(method_)) run();
      const std::lock_guard lock(service_.mutex_);
      service_.requests_[method_] = BytesOf(received_);
      auto found = service_.answers_.find(full_method_);
      if (found == service_.answers_.end()) found = service_.answers_.find(method_);
      if (found == service_.answers_.end()) {
        return End(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown service"));
      }
      const Answered& answer = found->second;
      if (answer.hangs) {
        if (method_ == "Subscribe") {
          service_.subscribed_.insert(this);
          service_.changed_.notify_all();
        }
        return;
      }
      if (!answer.status.ok()) return End(answer.status);
      unsent_.assign(answer.messages.rbegin(), answer.messages.rend());
      SendNext();
    }
    void OnCancel() override {
      const std::lock_guard lock(service_.mutex_);
      service_.subscribed_.erase(this);
      End(grpc::Status::CANCELLED);
    }
    void OnWriteDone(bool) override {
      const std::lock_guard lock(service_.mutex_);
      writes_ = false;
      service_.changed_.notify_all();
      if (!unsent_.empty() && !ended_) SendNext();
    }
    void OnDone() override { delete this; }
    bool writes() const { return writes_; }

    // The service's mutex is held, as for End.
    void Send(const std::string& bytes) {
      sent_ = BufferOf(bytes);
      writes_ = true;
      StartWrite(&sent_);
    }
    void End(const grpc::Status& status) {
      if (std::exchange(ended_, true)) return;
      Finish(status);
    }

   private:
    void SendNext() {
      sent_ = BufferOf(unsent_.back());
      unsent_.pop_back();
      if (!unsent_.empty()) return StartWrite(&sent_);
      ended_ = true;
      StartWriteAndFinish(&sent_, {}, grpc::Status::OK);
    }

    Service& service_;
    const std::string full_method_;
    const std::string method_;
    std::vector<std::string> unsent_;  // the last one first
    grpc::ByteBuffer received_;
    grpc::ByteBuffer sent_;
    bool writes_ = false;
    bool ended_ = false;
  };

  std::function<void()> BeforeOf(const std::string& method) const {
    const std::lock_guard lock(mutex_);
    const auto found = before_.find(method);
    return found == before_.end() ? nullptr : found->second;
  }

  class Methods final : public grpc::CallbackGenericService {
   public:
    explicit Methods(Service& service) : service_(service) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      const auto& metadata = context->client_metadata();
      const auto name = metadata.find("containerd-namespace");
      {
        const std::lock_guard lock(service_.mutex_);
        service_.namespace_ =
            name == metadata.end() ? "" : std::string(name->second.data(), name->second.size());
      }
      return new Reactor(service_, context->method());
    }

   private:
    Service& service_;
  };

  const std::string path_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Answered> answers_;
  std::map<std::string, std::function<void()>> before_;
  std::map<std::string, std::string> requests_;
  std::string namespace_;
  std::set<Reactor*> subscribed_;
  std::unique_ptr<Methods> methods_;
  std::unique_ptr<grpc::Server> server_;
};

FakeRuntime::FakeRuntime() : service_(std::make_unique<Service>(path())) {
  Answer("Version", Version("fake", "v1.0"));
}
FakeRuntime::~FakeRuntime() = default;

void FakeRuntime::Answer(const std::string& method, std::string bytes) {
  AnswerMany(method, {std::move(bytes)});
}
void FakeRuntime::AnswerMany(const std::string& method, std::vector<std::string> messages) {
  service_->Put(method, {.messages = std::move(messages)});
}
void FakeRuntime::Fail(const std::string& method, int status_code, const std::string& text) {
  service_->Put(method, {.status = {static_cast<grpc::StatusCode>(status_code), text}});
}
void FakeRuntime::Hang(const std::string& method) { service_->Put(method, {.hangs = true}); }
void FakeRuntime::Before(const std::string& method, std::function<void()> run) {
  service_->Before(method, std::move(run));
}
std::string FakeRuntime::request(const std::string& method) const {
  return service_->request(method);
}
std::string FakeRuntime::containerd_namespace() const { return service_->containerd_namespace(); }
void FakeRuntime::SendEvent() { service_->SendEvent(); }
void FakeRuntime::EndEvents() { service_->EndEvents(); }
void FakeRuntime::Stop() { service_->Stop(); }
void FakeRuntime::Start() { service_->Start(); }

namespace {

template <typename Message>
Message FromJson(const nlohmann::json& json) {
  Message message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  if (!JsonStringToMessage(json.dump(), &message, options).ok()) {
    throw std::runtime_error("not a message of CRI");
  }
  return message;
}

}  // namespace

runtime::v1::ListImagesResponse ImagesFrom(const std::string& crictl_json) {
  return FromJson<runtime::v1::ListImagesResponse>(nlohmann::json::parse(crictl_json));
}

runtime::v1::StatusResponse StatusFrom(const std::string& crictl_json) {
  // crictl prints the pieces of `info` beside the rest.
  nlohmann::json json = nlohmann::json::parse(crictl_json);
  nlohmann::json message;
  for (const auto& [key, value] : json.items()) {
    if (key == "runtimeHandlers") {
      message[key] = value;
    } else if (key != "status" && key != "features") {
      message["info"][key] = value.dump();
    }
  }
  return FromJson<runtime::v1::StatusResponse>(message);
}

runtime::v1::VersionResponse Version(const std::string& name, const std::string& version) {
  runtime::v1::VersionResponse answer;
  answer.set_runtime_name(name);
  answer.set_runtime_version(version);
  answer.set_runtime_api_version("v1");
  return answer;
}

runtime::v1::ListImagesResponse ManyImages(int count) {
  runtime::v1::ListImagesResponse list;
  for (int i = 0; i < count; ++i) {
    const std::string hex = std::string(56, 'a') + std::to_string(10'000'000 + i);
    auto* image = list.add_images();
    image->set_id("sha256:" + hex);
    image->add_repo_tags("registry.example.com/team/app:v" + std::to_string(i));
    image->add_repo_digests("registry.example.com/team/app@sha256:" + hex);
  }
  return list;
}

}  // namespace waybill::testing
