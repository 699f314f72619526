// SPDX-License-Identifier: Apache-2.0
//
// HttpClient: POST of JSON, by the system's libcurl.
//
// The library is loaded when it is first needed, so the program runs without it where nothing is
// asked over the network (docs/decisions/014-libcurl.md).
//
//   MC_TRY(const HttpClient http, HttpClient::create(), "--endpoint");
//   MC_TRY(HttpResponse response, http.post_json({.url = url, .body = json}), "ask the model");
#ifndef MC_SAMPLE_HTTP_H_
#define MC_SAMPLE_HTTP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"

namespace mc::sample {

struct HttpRequest {
  std::string url;
  std::string body{};
  std::string bearer{};                // "": no Authorization.
  std::vector<std::string> headers{};  // More of them: "Name: value".
  double connect_timeout_s = 10;
  double timeout_s = 600;  // From the start to the last byte.
};

struct HttpResponse {
  long status = 0;
  std::string content_type;
  std::string body;
  double retry_after_s = 0;  // 0: the server does not say.
};

inline constexpr size_t kResponseBytesMax = 64 << 20;

// The sender of a request; a test's fake in its place says what it likes.
class HttpPost {
 public:
  virtual ~HttpPost() = default;
  // Thread-safe.  kNotFound where no connection can be made: no such host, nothing that listens;
  // kUnavailable where there was no whole response; kTimeout; kInvalidInput for what is no URL.
  virtual Result<HttpResponse> post_json(const HttpRequest& request) const = 0;
};

class HttpClient final : public HttpPost {
 public:
  // kUnavailable where this machine has no libcurl.
  static Result<HttpClient> create();
  Result<HttpResponse> post_json(const HttpRequest& request) const override;
  // Makes a connection to the server, and sends nothing.  Errors as of post_json.
  Status reach(const std::string& url) const;

 private:
  HttpClient() = default;
};

}  // namespace mc::sample

#endif  // MC_SAMPLE_HTTP_H_
