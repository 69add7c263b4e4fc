"""What a plan would be if something about its run or cluster were different."""
