# Read by CMake at the end of configuring the engine (`tools/make_env.py` names it). It shortens the compilation and
# leaves alone what decodes: ggml, llama, sampling, drafting and the server keep llama.cpp's release options. Vision is
# linked and never called by this project; arguments, templates, downloads and HTTP run once a process or a request. The
# parser of chats keeps them too: a server that streams parses the whole text again at every token, beside the decoding.
if(NOT CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    return()
endif()

# Compile some files of a target as one, as llama.cpp does with its models: what takes the time is reading their headers.
function(specbook_as_one target name)
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(sources ${target} SOURCES)
    list(TRANSFORM sources PREPEND ${folder}/ REGEX "^[^/$]")
    list(REMOVE_ITEM sources ${ARGN})
    set(one ${CMAKE_BINARY_DIR}/specbook/${name}.cpp)
    list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
    list(JOIN includes "" text)
    file(WRITE ${one} "${text}")
    set_property(TARGET ${target} PROPERTY SOURCES ${sources} ${one})
    set_source_files_properties(${one} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS -O0)
endfunction()

function(specbook_shorten_compilation)
    # Programs that come with the engine and are never run here.
    foreach(program cli completion batched-bench imatrix fit-params gguf-split cvector-generator export-lora tokenize tts results)
        foreach(target llama-${program} llama-${program}-impl)
            if(TARGET ${target})
                target_compile_options(${target} PRIVATE -O0)
            endif()
        endforeach()
    endforeach()
    if(TARGET mtmd)
        target_compile_options(mtmd PRIVATE -O0)
        get_target_property(folder mtmd SOURCE_DIR)
        file(GLOB models ${folder}/models/*.cpp)
        specbook_as_one(mtmd mtmd-models ${models})
    endif()
    if(TARGET cpp-httplib)
        target_compile_options(cpp-httplib PRIVATE -O1)
    endif()
    if(TARGET llama-common)
        get_target_property(folder llama-common SOURCE_DIR)
        file(GLOB parsers ${folder}/parsers/*.cpp)
        specbook_as_one(llama-common chat-parsers ${parsers})
        get_target_property(sources llama-common SOURCES)
        file(GLOB seldom
            ${folder}/arg.cpp ${folder}/chat*.cpp ${folder}/json-schema*.cpp ${folder}/download.cpp ${folder}/hf-cache.cpp
            ${folder}/preset.cpp ${folder}/jinja/*.cpp)
        list(REMOVE_ITEM seldom ${folder}/chat.cpp ${folder}/chat-peg-parser.cpp)
        set_source_files_properties(${seldom} TARGET_DIRECTORY llama-common PROPERTIES COMPILE_OPTIONS -O0)
        # Of an inline function that several files hold, the linker keeps the first: the optimised files stand first.
        list(REMOVE_ITEM sources ${seldom} ${CMAKE_BINARY_DIR}/specbook/chat-parsers.cpp)
        set_property(TARGET llama-common PROPERTY SOURCES
            ${sources} ${seldom} ${CMAKE_BINARY_DIR}/specbook/chat-parsers.cpp)
    endif()
endfunction()

cmake_language(DEFER CALL specbook_shorten_compilation)
