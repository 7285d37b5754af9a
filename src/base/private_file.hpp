// Files and folders for this user alone: 0600 and 0700 from their first moment on, whatever the umask says.
//
//   make_private_folder("/srv/.reprise");
//   auto log = open_below("/srv/.reprise", "logs/7/0.1.log", O_WRONLY | O_CREAT | O_APPEND);
//   if (!log) … words_of(log.error())
//
// What stands below a store's folder may have come with an archive or a repository of somebody else. So no link is followed there, be it
// the file itself or a folder on the way; the folder itself is what the user has named, and may be one.
// Not supported: existing files and folders keep the rights they have.
//
// Thread safety: free functions without state.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"

namespace reprise::base {

template <class T>
using SystemResult = std::expected<T, std::error_code>;

// With the folders above it that are missing. True: it was missing itself.
SystemResult<bool> make_private_folder(const std::string& path);

// An empty file, unless there is something of that name; never through a link. True: it was made.
SystemResult<bool> make_private_file(const std::string& path);

// `name` is a path relative to the folder, without "..". Flags are those of open(); with O_CREAT missing folders below `folder` are made.
SystemResult<Descriptor> open_below(const std::string& folder, std::string_view name, int flags);

// The folder that open_below() would put the file into, without the file.
SystemResult<void> make_folder_of(const std::string& folder, std::string_view name);

// Removes the file, or the folder with all that is in it. What is not there is removed already.
SystemResult<void> remove_below(const std::string& folder, std::string_view name);

// The part of `path` below the folder; empty: it stands elsewhere.
std::string_view name_below(const std::string& folder, std::string_view path);

// What was written to the file survives a power cut, and so do its name and those of the folders on the way.
SystemResult<void> sync_below(const std::string& folder, std::string_view name, const Descriptor& file);

// What the system says, and for a link that it is one.
std::string words_of(const std::error_code& problem);

}  // namespace reprise::base
