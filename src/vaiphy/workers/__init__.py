"""Where heavy work is done: threads of this process, or processes here and on other machines, behind one narrow interface."""
