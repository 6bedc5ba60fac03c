# The few build words this project needs.

find_package(Threads REQUIRED)
include(CheckCCompilerFlag)

# Flags every target of ours takes.
add_library(tt_flags INTERFACE)
target_include_directories(tt_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tt_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes
                       -Wmissing-prototypes -Wpointer-arith -Wno-missing-field-initializers)
target_compile_definitions(tt_flags INTERFACE _GNU_SOURCE TT_VERSION="${PROJECT_VERSION}")
if(TT_WERROR)
  target_compile_options(tt_flags INTERFACE -Werror)
endif()
if(TT_SANITIZE)
  target_compile_options(tt_flags INTERFACE -fsanitize=${TT_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=undefined)
  target_link_options(tt_flags INTERFACE -fsanitize=${TT_SANITIZE})
endif()

# tutti_library(name FOLDER dir | SOURCES ... LIBS ...): static library tt_<name>. A folder's *.c all
# belong to it, except those another library or an option claims.
function(tutti_library name)
  cmake_parse_arguments(A "" "FOLDER" "SOURCES;LIBS" ${ARGN})
  set(sources ${A_SOURCES})
  if(A_FOLDER)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${A_FOLDER}/*.c)
    list(FILTER sources EXCLUDE REGEX "/units\\.c$")
  endif()
  if(NOT sources)
    file(WRITE ${PROJECT_BINARY_DIR}/empty_${name}.c "typedef int tt_empty;\n")
    set(sources ${PROJECT_BINARY_DIR}/empty_${name}.c)
  endif()
  add_library(tt_${name} STATIC ${sources})
  target_link_libraries(tt_${name} PUBLIC tt_flags ${A_LIBS})
endfunction()

# tutti_optional(lib file PACKAGE [WITH file...]): <folder>/<file>.c needs PACKAGE, as do those it comes
# with; without it, <file>_none.c, which says what to install, stands in. Both define the same functions.
function(tutti_optional lib file package)
  cmake_parse_arguments(A "" "" "WITH" ${ARGN})
  if(TARGET tt_${lib})
    set(target tt_${lib})
  else()
    set(target ${lib}) # the program
  endif()
  if(${package}_FOUND)
    set(out ${file}_none)
    target_link_libraries(${target} PUBLIC PkgConfig::${package})
  else()
    set(out ${file} ${A_WITH})
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(name ${out})
    list(FILTER sources EXCLUDE REGEX "/${name}\\.c$")
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()

# tutti_registry(folder TYPE PREFIX HEADER): the sorted table of <folder>/<prefix>_<name>.c, each of
# which defines `const TYPE tt_<prefix>_<name>`. For cli it also makes the program.
function(tutti_registry folder)
  cmake_parse_arguments(A "" "TYPE;PREFIX;HEADER" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/${A_PREFIX}_*.c)
  list(SORT files)
  set(externs "")
  set(rows "")
  foreach(f ${files})
    get_filename_component(n ${f} NAME_WE)
    string(APPEND externs "extern const ${A_TYPE} tt_${n};\n")
    string(APPEND rows "    &tt_${n},\n")
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/${folder}_${A_PREFIX}_registry.c)
  file(CONFIGURE OUTPUT ${out} CONTENT
"/* Written by the build from ${folder}/${A_PREFIX}_*.c */
#include \"${A_HEADER}\"
${externs}
const ${A_TYPE} *const tt_${A_PREFIX}s[] = {
${rows}    NULL
};
" @ONLY)
  if(folder STREQUAL "cli")
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
    add_executable(tutti ${sources} ${out})
    target_link_libraries(tutti PRIVATE tt_flags)
  else()
    target_sources(tt_${folder} PRIVATE ${out})
  endif()
endfunction()

# tutti_embed(lib PATTERN glob TYPE TABLE HEADER): files compiled in as { name, summary, text }; the
# summary is the file's first comment line ("# ...").
function(tutti_embed lib)
  cmake_parse_arguments(A "" "PATTERN;TYPE;TABLE;HEADER" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${A_PATTERN})
  list(SORT files)
  set(rows "")
  foreach(f ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${f})
    get_filename_component(n ${f} NAME_WE)
    file(READ ${f} text)
    string(REGEX MATCH "^# ([^\n]*)" _ "${text}")
    set(summary "${CMAKE_MATCH_1}")
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\"" "\\\"" summary "${summary}")
    string(REPLACE "\n" "\\n\"\n      \"" text "${text}")
    string(APPEND rows "    { \"${n}\", \"${summary}\",\n      \"${text}\" },\n")
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/${A_TABLE}.c)
  file(WRITE ${out}.new
"/* Written by the build; edit the files, not this. */
#include \"${A_HEADER}\"

const ${A_TYPE} ${A_TABLE}[] = {
${rows}    { NULL, NULL, NULL },
};
")
  file(COPY_FILE ${out}.new ${out} ONLY_IF_DIFFERENT)
  target_sources(tt_${lib} PRIVATE ${out})
endfunction()

# tutti_mpi_modules(source): BUILD/backends/tutti_mpi_<name>.so, one per MPI whose compiler is
# there, with that compiler. The program is not linked with any: it loads the one that started it.
function(tutti_mpi_modules source)
  set(made "")
  set(modules "")
  foreach(wrapper mpicc.openmpi mpicc.mpich mpicc.mvapich mpicc)
    string(MAKE_C_IDENTIFIER "TT_${wrapper}" var)
    find_program(${var} ${wrapper})
    mark_as_advanced(${var})
    if(NOT ${var})
      continue()
    endif()
    file(WRITE ${PROJECT_BINARY_DIR}/which_mpi.c "#include <mpi.h>\n")
    execute_process(COMMAND ${${var}} -E -dM ${PROJECT_BINARY_DIR}/which_mpi.c
                    OUTPUT_VARIABLE macros ERROR_QUIET RESULT_VARIABLE failed)
    set(name "")
    if(failed)
      continue()
    elseif(macros MATCHES "#define OPEN_MPI ")
      set(name openmpi)
    elseif(macros MATCHES "#define MVAPICH2?_VERSION ")
      set(name mvapich)
    elseif(macros MATCHES "#define I_MPI_VERSION ")
      set(name intel)
    elseif(macros MATCHES "#define MPICH_VERSION ")
      set(name mpich)
    endif()
    if(NOT name OR name IN_LIST made)
      continue()
    endif()
    list(APPEND made ${name})
    set(module ${PROJECT_BINARY_DIR}/backends/tutti_mpi_${name}.so)
    add_custom_command(OUTPUT ${module}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/backends
      COMMAND ${${var}} -std=gnu11 -O2 -Wall -Wextra $<$<BOOL:${TT_WERROR}>:-Werror> -fPIC -shared
              -I${PROJECT_SOURCE_DIR} -o ${module} ${PROJECT_SOURCE_DIR}/${source}
      DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${PROJECT_SOURCE_DIR}/exec/backend_mpi_abi.h
      COMMENT "Building the module for ${name}" VERBATIM COMMAND_EXPAND_LISTS)
    list(APPEND modules ${module})
  endforeach()
  add_custom_target(tt_backends ALL DEPENDS ${modules})
  set(TT_MPIS "${made}" PARENT_SCOPE)
endfunction()

# What was found, in one place, with what is missing without it.
function(tutti_summary)
  macro(line found what without)
    if(${found})
      message(STATUS "  ${what}: yes")
    else()
      message(STATUS "  ${what}: no - ${without}")
    endif()
  endmacro()
  message(STATUS "Tutti ${PROJECT_VERSION} (${CMAKE_BUILD_TYPE}${TT_SANITIZE})")
  line(JSON_FOUND "json-glib" "no --json output (libjson-glib-dev)")
  line(HWLOC_FOUND "hwloc" "no --topo this (libhwloc-dev)")
  line(GSL_FOUND "GSL" "no fitting of NCCL's constants (libgsl-dev)")
  line(LIBXML2_FOUND "libxml2" "no NCCL topology and graph files (libxml2-dev)")
  line(IBVERBS_FOUND "libibverbs" "no RDMA (libibverbs-dev)")
  line(CUNIT_FOUND "CUnit" "no tests (libcunit1-dev)")
  line(GNUPLOT "gnuplot" "no plots (gnuplot-nox)")
  line(TT_GPU_HOST_FOUND "GPU kernels on the CPU" "no --gpus host (g++)")
  list(JOIN TT_MPIS ", " mpis)
  line(TT_MPIS "MPI (${mpis})" "no --backend mpi (libopenmpi-dev or libmpich-dev)")
endfunction()
