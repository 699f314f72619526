// SPDX-License-Identifier: Apache-2.0
#include "sample/http.h"

#include <memory>

#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

namespace mc::sample {
namespace {

// The functions of libcurl that this file uses.
struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  bool is_usable = false;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Curl load() {
  Curl curl;
  void* library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return curl;
  curl.is_usable = find(library, "curl_global_init", curl.global_init) &&
                   find(library, "curl_easy_init", curl.easy_init) &&
                   find(library, "curl_easy_setopt", curl.easy_setopt) &&
                   find(library, "curl_easy_perform", curl.easy_perform) &&
                   find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                   find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                   find(library, "curl_easy_strerror", curl.easy_strerror) &&
                   find(library, "curl_slist_append", curl.slist_append) &&
                   find(library, "curl_slist_free_all", curl.slist_free_all) &&
                   curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return curl;
}

// The library is loaded once and never unloaded, because its global state cannot be initialized
// twice.
const Curl& library() {
  static const Curl curl = load();
  return curl;
}

size_t take_body(char* data, size_t size, size_t num, void* body) {
  auto& text = *static_cast<std::string*>(body);
  // A smaller return value aborts the transfer.
  if (text.size() + size * num > kResponseBytesMax) return 0;
  text.append(data, size * num);
  return size * num;
}

Error failure(CURLcode code, const HttpRequest& request) {
  const std::string why = library().easy_strerror(code);
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return {ErrorCode::kInvalidInput, fmt::format("'{}' is no URL: {}", request.url, why)};
  }
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
    return {ErrorCode::kNotFound,
            fmt::format("no answer from {}: {}: is the server running there?", request.url, why)};
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return {ErrorCode::kTimeout, fmt::format("no answer from {} in time", request.url)};
  }
  return {ErrorCode::kUnavailable, fmt::format("no answer from {}: {}", request.url, why)};
}

using Handle = std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&::curl_slist_free_all)>;

Headers headers_of(const HttpRequest& request) {
  const Curl& curl = library();
  curl_slist* list = curl.slist_append(nullptr, "Content-Type: application/json");
  list = curl.slist_append(list, "Accept: application/json");
  list = curl.slist_append(list, "Expect:");
  if (!request.bearer.empty()) {
    list = curl.slist_append(list, ("Authorization: Bearer " + request.bearer).c_str());
  }
  for (const std::string& header : request.headers) list = curl.slist_append(list, header.c_str());
  return {list, curl.slist_free_all};
}

void set_options(CURL* handle, const HttpRequest& request, const curl_slist* headers,
                 std::string& body) {
  const auto set = library().easy_setopt;
  set(handle, CURLOPT_URL, request.url.c_str());
  set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle, CURLOPT_HTTPHEADER, headers);
  set(handle, CURLOPT_POSTFIELDS, request.body.c_str());
  set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  set(handle, CURLOPT_WRITEFUNCTION, &take_body);
  set(handle, CURLOPT_WRITEDATA, &body);
  set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(1000 * request.connect_timeout_s));
  set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(1000 * request.timeout_s));
  set(handle, CURLOPT_NOSIGNAL, 1L);
}

}  // namespace

Result<HttpClient> HttpClient::create() {
  if (library().is_usable) return HttpClient();
  return Error{ErrorCode::kUnavailable,
               "this machine has no libcurl.so.4: install libcurl4 to ask an endpoint"};
}

Status HttpClient::reach(const std::string& url) const {
  const Curl& curl = library();
  const Handle handle(curl.easy_init(), curl.easy_cleanup);
  if (!handle) return Error{ErrorCode::kExhausted, "libcurl has no memory"};
  std::string body;
  const HttpRequest request{.url = url};
  set_options(handle.get(), request, nullptr, body);
  curl.easy_setopt(handle.get(), CURLOPT_CONNECT_ONLY, 1L);
  const CURLcode code = curl.easy_perform(handle.get());
  return code == CURLE_OK ? ok() : Status(failure(code, request));
}

Result<HttpResponse> HttpClient::post_json(const HttpRequest& request) const {
  const Curl& curl = library();
  const Handle handle(curl.easy_init(), curl.easy_cleanup);
  if (!handle) return Error{ErrorCode::kExhausted, "libcurl has no memory"};
  const Headers headers = headers_of(request);
  HttpResponse response;
  set_options(handle.get(), request, headers.get(), response.body);
  const CURLcode code = curl.easy_perform(handle.get());
  if (code != CURLE_OK) return failure(code, request);
  curl.easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &response.status);
  const char* type = nullptr;
  curl.easy_getinfo(handle.get(), CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) response.content_type = type;
  curl_off_t retry_after = 0;
  curl.easy_getinfo(handle.get(), CURLINFO_RETRY_AFTER, &retry_after);
  response.retry_after_s = static_cast<double>(retry_after);
  return response;
}

}  // namespace mc::sample
