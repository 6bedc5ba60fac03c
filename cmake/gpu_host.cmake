# The "host" driver of GPUs: the kernels of exec/cuda compiled for the CPU, with a C++ compiler if there is one.

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
endif()

# tutti_gpu_host(lib): adds the driver to the library. Sets TT_GPU_HOST_FOUND. What is C++ here uses nothing of its
# library and throws nothing.
function(tutti_gpu_host lib)
  set(TT_GPU_HOST_FOUND FALSE PARENT_SCOPE)
  if(NOT CMAKE_CXX_COMPILER)
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/exec/cuda)
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cu)
  set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX)
  add_library(tt_gpu_host OBJECT ${folder}/driver_host.cc ${folder}/host_pool.cc ${folder}/shim.cc ${kernels})
  set_target_properties(tt_gpu_host PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS ON)
  target_include_directories(tt_gpu_host PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(tt_gpu_host PRIVATE _GNU_SOURCE)
  target_compile_options(tt_gpu_host PRIVATE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
                         -fno-exceptions -fno-rtti -fno-strict-aliasing)
  if(TT_WERROR)
    target_compile_options(tt_gpu_host PRIVATE -Werror)
  endif()
  if(TT_SANITIZE)
    target_compile_options(tt_gpu_host PRIVATE -fsanitize=${TT_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=undefined)
  endif()
  target_link_libraries(tt_gpu_host PRIVATE PkgConfig::GLIB Threads::Threads)
  target_sources(${lib} PRIVATE $<TARGET_OBJECTS:tt_gpu_host>)
  set_property(GLOBAL APPEND PROPERTY TT_GPU_DRIVERS host)
  set(TT_GPU_HOST_FOUND TRUE PARENT_SCOPE)
endfunction()
