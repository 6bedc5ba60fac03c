# GPUs: drivers (exec/gpu.h), and what compiles their kernels. Nothing here is needed to build the rest.

# --- CUDA: begin ----------------------------------------------------------------------------------

set(TT_CUDA_ARCHITECTURES "" CACHE STRING
    "Compute capabilities of the kernels, as 80;90;100; a later GPU compiles the PTX of the lowest")

# tutti_cuda(lib): exec/cuda/driver_cuda.c and the kernels, with the toolkit's nvcc and its static runtime, so that the
# program starts without a driver, too. Each .cu is one nvcc call: the program stays C for CMake, and is linked without
# a C++ library (-fno-...: what nvcc adds to a kernel would need one; nobody calls it). Sets
# TT_CUDA_FOUND, and TT_CUDA_WORDS: for what, or why not.
function(tutti_cuda lib)
  set(TT_CUDA_FOUND FALSE PARENT_SCOPE)
  if(TT_SANITIZE)
    set(TT_CUDA_WORDS "not with sanitizers: --gpus host runs the same kernels" PARENT_SCOPE)
    return()
  endif()
  find_package(CUDAToolkit 11.4 QUIET)
  if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE OR NOT TARGET CUDA::cudart_static)
    set(TT_CUDA_WORDS "no --transport cuda on GPUs (CUDA Toolkit 11.4 or later, with nvcc)" PARENT_SCOPE)
    return()
  endif()
  tutti_cuda_architectures(archs words)
  set(flags -std=c++17 -O3 -I${PROJECT_SOURCE_DIR} ${archs} -Xcompiler=-Wall,-Wextra,-fno-exceptions,-fno-threadsafe-statics)
  if(TT_WERROR)
    list(APPEND flags -Werror=all-warnings -Xcompiler=-Werror)
  endif()
  tutti_cuda_works("${flags}" why)
  if(why)
    set(TT_CUDA_WORDS "${why}" PARENT_SCOPE)
    return()
  endif()

  set(folder ${PROJECT_SOURCE_DIR}/exec/cuda)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cu)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -MD -MF ${object}.d -MT ${object} -c -o ${object} ${source}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${name}.o" VERBATIM)
    target_sources(${lib} PRIVATE ${object})
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)

  set(driver ${folder}/driver_cuda.c ${folder}/cuda_memory.c ${folder}/cuda_launch.c
      ${folder}/cuda_time.c ${folder}/cuda_direct.c)
  target_sources(${lib} PRIVATE ${driver})
  list(TRANSFORM CUDAToolkit_INCLUDE_DIRS PREPEND -isystem OUTPUT_VARIABLE includes)
  set_source_files_properties(${driver} PROPERTIES COMPILE_OPTIONS "${includes}"
                              COMPILE_DEFINITIONS TT_CUDA_BUILT_FOR="${words}")
  target_link_libraries(${lib} PUBLIC CUDA::cudart_static)
  set_property(GLOBAL APPEND PROPERTY TT_GPU_DRIVERS cuda)
  set(TT_CUDA_FOUND TRUE PARENT_SCOPE)
  set(TT_CUDA_WORDS "CUDA ${CUDAToolkit_VERSION}: ${words}" PARENT_SCOPE)
endfunction()

# nvcc's options, and "sm_80 sm_90 compute_80". Those the user asks for, or what this nvcc knows of the usual.
function(tutti_cuda_architectures options words)
  set(wanted ${TT_CUDA_ARCHITECTURES})
  if(NOT wanted)
    set(wanted ${CMAKE_CUDA_ARCHITECTURES})
  endif()
  if(NOT wanted)
    execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
    foreach(arch 80 90 100)
      if(known MATCHES "compute_${arch}\n")
        list(APPEND wanted ${arch})
      endif()
    endforeach()
  endif()
  list(TRANSFORM wanted REPLACE "-(real|virtual)$" "")
  list(REMOVE_DUPLICATES wanted)
  list(SORT wanted COMPARE NATURAL)
  set(out "")
  set(names "")
  foreach(arch ${wanted})
    if(NOT arch MATCHES "^[0-9]+[af]?$")
      message(FATAL_ERROR "TT_CUDA_ARCHITECTURES: \"${arch}\" is not a number as 80, 90 or 100")
    endif()
    list(APPEND out -gencode=arch=compute_${arch},code=sm_${arch})
    string(APPEND names "sm_${arch} ")
  endforeach()
  if(wanted)
    list(GET wanted 0 lowest)
    list(APPEND out -gencode=arch=compute_${lowest},code=compute_${lowest})
    string(APPEND names "compute_${lowest}")
  endif()
  set(${options} "${out}" PARENT_SCOPE)
  set(${words} "${names}" PARENT_SCOPE)
endfunction()

# Compiles a kernel of one line, once for these options: @why is empty if that goes well.
function(tutti_cuda_works flags why)
  set(key "${CUDAToolkit_NVCC_EXECUTABLE} ${CUDAToolkit_VERSION} ${flags}")
  if(NOT "${TT_CUDA_CHECKED}" STREQUAL "${key}")
    file(WRITE ${PROJECT_BINARY_DIR}/cuda/check.cu "__global__ void nothing(int *at) { *at = 0; }\n")
    execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${flags} -c check.cu -o check.o
                    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/cuda RESULT_VARIABLE failed
                    OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      string(REGEX MATCH "[^\n]*(error|fatal|unsupported|not found|cannot)[^\n]*" said "${said}")
      set(${why} "nvcc compiles nothing here: ${said}" PARENT_SCOPE)
      return()
    endif()
    set(TT_CUDA_CHECKED "${key}" CACHE INTERNAL "")
  endif()
  set(${why} "" PARENT_SCOPE)
endfunction()

# --- CUDA: end ------------------------------------------------------------------------------------

# tutti_gpu_drivers(lib): the table of those above. After them.
function(tutti_gpu_drivers lib)
  get_property(names GLOBAL PROPERTY TT_GPU_DRIVERS)
  set(externs "")
  set(rows "")
  foreach(name ${names})
    string(APPEND externs "extern const TtGpuDriver tt_gpu_driver_${name};\n")
    string(APPEND rows "    &tt_gpu_driver_${name},\n")
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/gpu_drivers.c)
  set(stand_in "")
  if(NOT "host" IN_LIST names)
    set(stand_in "void tt_gpu_host_set(guint n_gpus, guint n_threads);
void
tt_gpu_host_set(guint n_gpus G_GNUC_UNUSED, guint n_threads G_GNUC_UNUSED)
{
}
")
  endif()
  file(CONFIGURE OUTPUT ${out} CONTENT
"/* Written by the build: cmake/gpu.cmake */
#include \"exec/gpu.h\"
${externs}${stand_in}
const TtGpuDriver *const tt_gpu_drivers[] = {
${rows}    NULL
};
" @ONLY)
  target_sources(${lib} PRIVATE ${out} ${PROJECT_SOURCE_DIR}/exec/cuda/driver_words.c)
endfunction()

# What was found, in one place, with what is missing without it.
function(tutti_gpu_summary)
  if(TT_CUDA_FOUND)
    message(STATUS "  GPUs: yes (${TT_CUDA_WORDS}; compiled here, to be run where there is a GPU)")
  else()
    message(STATUS "  GPUs: no - ${TT_CUDA_WORDS}")
  endif()
endfunction()
