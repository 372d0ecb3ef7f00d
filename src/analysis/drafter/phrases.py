"""Sentences written for the training prompts. They are asked of the target; nothing here is an answer."""

TOPICS = tuple(
    """photosynthesis|the French Revolution|black holes|the water cycle|managing your time|healthy breakfasts
the Roman Empire|electric cars|growing tomatoes|jazz music|the human heart|secret codes|space travel
chess openings|saving money|wind power|Shakespeare's plays|the stock market|yoga|databases
how search engines work|sleep|whales|the Great Wall of China|recycling|vaccines|coffee|climbing mountains
the Industrial Revolution|gravity|speaking in public|cats|sailing|baking bread|operating systems
Japanese gardens|the moon|rainforests|robots|friendship|privacy online|photography|running a marathon
the printing press|supply and demand|DNA|glaciers|board games|architecture|tea|meditation|bicycles|compilers
the Renaissance|working in a team|deserts|opera|learning a language|the ocean floor|good manners|old maps
penguins|bridges|cooking for two|the solar system|moving to a new city|job interviews|being a good neighbour
dinosaurs|insects|the history of writing|the Olympic Games|modern art|camping|reading to children|kindness
weather forecasts|public transport|clocks|elections|silk|budget travel|village life|stress at work|pottery
wolves|the Silk Road|steam engines|first aid|honesty|football|small businesses|the sense of smell|libraries
bees and flowers|ancient Egypt|computers in schools|walking every day|keeping a diary|jokes|lighthouses
artificial intelligence|the Vikings|soil|markets|courage|trees in winter|rivers|money and happiness|tides
chocolate|orchestras|family dinners|volunteering|electricity|the immune system|kites""".replace("\n", "|").split("|")
)
QUESTIONS = (
    "Explain {t} in simple terms.",
    "Write a short story about {t}.",
    "What are five interesting facts about {t}?",
    "Write a blog post about {t}.",
    "Give me a step by step guide to {t}.",
    "Write a poem about {t}.",
    "Summarize the history of {t}.",
    "What are the pros and cons of {t}?",
    "Write an email to a colleague about {t}.",
    "Write a dialogue between two friends about {t}.",
    "List common questions about {t} and answer them.",
    "Why is {t} important?",
    "Write an essay about {t}.",
    "Compare {t} and {u}.",
    "I have to give a talk about {t}. What should I say?",
    "Can you tell me more about {t}?",
    "What do beginners get wrong about {t}?",
    "How did {t} change over the last hundred years?",
    "Describe {t} to a child of ten.",
    "What should I read to learn about {t}?",
    "Write a letter to a newspaper about {t}.",
    "Imagine a world without {t}. What would it be like?",
    "Write a speech about {t} and {u}.",
    "How are {t} and {u} connected?",
    "What is the most surprising thing about {t}?",
    "Plan a weekend around {t}.",
)
OPENINGS = (
    "The history of {t} begins",
    "Once upon a time, in a land where people cared deeply about {t},",
    "# {t}\n\nIn this article",
    "Most people know little about {t}.",
    "When I first heard about {t}, I",
    "There are three things to remember about {t}.",
    "{t}, as scientists have shown,",
    "My grandmother always said that {t}",
    "In the early days of {t},",
    "The relationship between {t} and {u} is",
    "Dear reader, today we talk about {t}.",
    "A new study on {t} has found that",
    "She had never thought much about {t} until",
    "To understand {t}, it helps to",
    "Introduction to {t}\n\n",
    "The old man looked up from his book about {t} and",
    "It is often said that {t}",
    "Chapter 1: {t}\n\n",
)
TASKS = tuple(
    """reverses a string|checks if a number is prime|computes the factorial of a number
finds the largest value in a list|removes duplicates from a list|counts the vowels in a string
merges two sorted lists|reads a CSV file and prints each row|computes the Fibonacci sequence
checks whether a string is a palindrome|sorts a list of dictionaries by a key|implements binary search
implements a stack|implements a queue|implements a linked list|converts Celsius to Fahrenheit
downloads a web page|parses JSON from a file|computes the average of a list|finds the longest word in a sentence
flattens a nested list|generates a random password|counts how often each word occurs in a text
validates an email address|computes the greatest common divisor|transposes a matrix|implements quicksort
implements a simple bank account|draws a triangle with asterisks|converts a decimal number to binary
finds all anagrams of a word|implements depth first search|implements a cache with a size limit
simulates rolling dice|computes the distance between two points|rotates a list|finds the second largest number
writes a log message to a file|measures how long a function takes to run|computes compound interest
removes punctuation from a text|reads a config file|finds the common elements of two lists
splits a list into chunks|capitalizes each word|checks if two strings are anagrams
computes the sum of the digits of a number|prints a multiplication table|converts Roman numerals to integers
finds prime numbers up to n|implements a timer|encrypts a message with a Caesar cipher|implements a to-do list
validates a password|counts the lines in a file|groups items by a key|implements a priority queue
sorts by two keys|computes the median|plays tic-tac-toe|implements a binary tree
checks if parentheses are balanced|renames files in a folder|finds the shortest path in a graph
adds two matrices|retries a failing call|formats a date|merges two dictionaries""".replace("\n", "|").split("|")
)
REQUESTS = (
    "Write a Python function that {c}.",
    "Write a Python program that {c} and explain how it works.",
    "Can you show me code that {c}?",
    "Write a JavaScript function that {c}.",
    "Write a Python class or function that {c}. Include a docstring and an example.",
    "Write a C++ function that {c}.",
    "How do I write a function that {c}?",
    "Write unit tests for a function that {c}.",
    "I need a script that {c}.",
    "Write a Java method that {c}.",
    "Explain step by step how a function that {c} works, with code.",
)
REPEAT_CODE = (
    "Repeat the following code exactly, without any changes:\n```python\n{x}\n```",
    "Here is a function:\n```python\n{x}\n```\nRepeat this function verbatim.",
    "```python\n{x}\n```\nCopy the code above word for word.",
    "Please print the following file again, unchanged.\n\n{x}",
)
REPEAT_TEXT = (
    "Repeat the following text exactly:\n{x}",
    "Copy this paragraph word for word:\n\n{x}",
    'Here is a text:\n"{x}"\nRepeat it verbatim.',
)
AGAIN = ("\n\n\n# the same function again:\n", "\n\n\n", "\n\n\n# verbatim copy of the function above\n")
